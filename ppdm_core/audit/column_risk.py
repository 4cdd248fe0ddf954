"""Which columns drive the risk: persons that are found with all columns, and without each one.

The attacker takes the closest row of each person, on the draws and persons of the audit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ppdm_core.attacks import ColumnLinkage
from ppdm_core.audit.attack_runs import AttackRuns
from ppdm_core.audit.scores import average_persons, pick_worst
from ppdm_core.model.arrays import Floats
from ppdm_core.model.column_risks import ColumnRisk, ColumnRisks
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.mean_limits import mean_interval

MIN_COLUMNS = 2


class ColumnRuns:
    """Linkage with all columns, or without one, on the draws and persons of an audit."""

    def __init__(self, runs: AttackRuns) -> None:
        self.level = runs.policy.level
        self.trials = runs.trials
        self.linkages = [
            ColumnLinkage(runs.build_linkage_view(number)) for number in range(len(runs.trials))
        ]
        if len(self.columns) < MIN_COLUMNS:
            raise NotApplicable("A single column is released.", reason=Reason.NOT_MEASURABLE)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.linkages[0].columns

    def find_persons(self, lacking: str | None = None) -> Floats:
        """Return in which share of the draws each person is found, by the best estimate."""
        found: dict[str, list[Floats]] = {}
        for trial, linkage in zip(self.trials, self.linkages, strict=True):
            targets = trial.participants.targets
            has_row = np.isin(targets, trial.draw.records)
            for name, rows in linkage.link(lacking).items():
                hits = np.where(has_row, trial.align("link", rows) == targets, np.nan)
                found.setdefault(name, []).append(hits)
        persons = [trial.participants.targets for trial in self.trials]
        complete = {name: hits for name, hits in found.items() if len(hits) == len(persons)}
        values = {name: average_persons(persons, hits) for name, hits in complete.items()}
        means = {name: float(each.mean()) for name, each in values.items() if len(each)}
        if not means:
            raise NotApplicable("No person has a row.", reason=Reason.TOO_FEW_RECORDS)
        return values[pick_worst(means, "down")]

    def compare(self, complete: Floats, columns: Sequence[str]) -> ColumnRisks:
        """Return what is found without each of the columns; ``complete`` is that with all."""
        lines = []
        for column in columns:
            without = self.find_persons(column)
            ends = mean_interval(complete - without, self.level, bounds=(-1.0, 1.0))
            lines.append(ColumnRisk(column, float(without.mean()), *ends))
        return ColumnRisks(len(complete), float(complete.mean()), tuple(lines))


def measure_columns(runs: AttackRuns) -> ColumnRisks:
    """Return which columns drive the risk."""
    found = ColumnRuns(runs)
    return found.compare(found.find_persons(), found.columns)
