"""One metric of one attack on all draws: from the estimates to the figures of a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import OriginalTable
from ppdm_core.audit.scores import Figures, IntervalAtLevel, average_notes, pick_worst
from ppdm_core.audit.simulation import TrialOutcome
from ppdm_core.metrics import AttackMetric
from ppdm_core.model.arrays import Bools, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason

M = TypeVar("M", bound=AttackMetric, covariant=True)
MIN_GROUP_RECORDS = 20  # a figure measured on fewer records says nothing


class Evaluator(ABC, Generic[M]):
    """One metric of the estimates of one attack on all draws.

    A unit is what an estimate is about: a released row or a target. Records that the attacker
    knew before do not count: their units are numbered -1.
    """

    has_control = False  # the baseline is measured on persons outside the release
    hides_control_labels = False  # the baseline without the label: that of these persons is hidden

    def __init__(
        self,
        metric: M,
        truth: OriginalTable,
        outcomes: list[TrialOutcome],
        epsilon: float,
        scenario: str = "",
        is_label_column: bool = False,
    ) -> None:
        """Take what was found; ``is_label_column``: the baseline does without the label."""
        self.metric, self.truth, self.outcomes = metric, truth, outcomes
        self.epsilon, self.scenario, self.is_label_column = epsilon, scenario, is_label_column

    @abstractmethod
    def units(self, outcome: TrialOutcome) -> Ints:
        """Return the record behind each unit."""

    @abstractmethod
    def measure(self, outcome: TrialOutcome, name: str, keep: Bools) -> float:
        """Return the metric of one candidate on the units to ``keep``."""

    @abstractmethod
    def baseline(self, name: str) -> float:
        """Return the metric of an attacker who ignores the release."""

    @property
    def names(self) -> list[str]:
        """The candidates of the scenario."""
        return list(self.outcomes[0].estimates(self.scenario))

    def estimate(self, outcome: TrialOutcome, name: str) -> NDArray[Any]:
        """Return one candidate of the scenario."""
        return outcome.estimates(self.scenario)[name]

    def select(self, outcome: TrialOutcome, records: Ints | None = None) -> Bools:
        """Return which units count, none if they cannot be measured; ``records``: only of these."""
        units = self.units(outcome)
        return units >= 0 if records is None else np.isin(units, records)

    def select_group(self, outcome: TrialOutcome, records: Ints) -> Bools:
        """Return the units that measure the risk of these records."""
        return self.select(outcome, records)

    def values(self, name: str, records: Ints | None = None) -> list[float]:
        """Return one value per draw, leaving out draws in which no such record has a unit."""
        masks = [(one, self.select(one, records)) for one in self.outcomes]
        return [self.measure(one, name, keep) for one, keep in masks if keep.any()]

    def measure_group(self, name: str, records: Ints) -> float | None:
        """Return the mean value of a group of records, None if it cannot be measured."""
        masks = [(one, self.select_group(one, records)) for one in self.outcomes]
        try:
            found = [self.measure(one, name, keep) for one, keep in masks if keep.any()]
        except NotApplicable:  # for example because all records of the group are zero
            return None
        return float(np.mean(found)) if found else None

    def gather_units(self) -> Ints:
        """Return the records behind the units of all draws that count."""
        units = np.concatenate([self.units(one) for one in self.outcomes])
        return units[units >= 0]

    def n(self, name: str) -> int:
        """Return the effective number of persons: further draws of the same ones add nothing."""
        return count_effective(self.gather_units())

    def control_n(self, name: str) -> int | None:
        """Return the number of persons behind the baseline, None if it was not measured."""
        return None

    def interval(self, name: str) -> IntervalAtLevel | None:
        """Return the metric's own interval as a function of the level, None if it has none."""
        return None

    def make_figures(self, attack: str, isolated: Ints, groups: Mapping[str, Bools]) -> Figures:
        """Return the figures of the candidate with the highest risk.

        ``isolated`` are the most isolated tenth of the records, ``groups`` the declared ones.
        """
        # Measured for all candidates, so that a broken one is found even if another is worse.
        values = {name: self.values(name) for name in self.names}
        if not all(values.values()):
            raise NotApplicable(
                f"The attack {attack} has too few records to be scored on.",
                reason=Reason.TOO_FEW_RECORDS,
            )
        # What also works on persons outside the release is no breach of it.
        controls = {name: self.baseline(name) for name in self.names if self.has_control}
        risks = {name: float(np.mean(values[name])) - controls.get(name, 0.0) for name in values}
        name = pick_worst(risks, self.metric.better)
        pool = np.unique(self.gather_units())
        group, worst_group = self.find_worst_group(name, groups)
        has_claims = self.metric.uses_claims and all(name in one.claims for one in self.outcomes)
        return Figures(
            values=values[name],
            n=self.n(name),
            baseline=controls[name] if controls else self.baseline(name),
            value_on=lambda rows: mean_or_nan(self.values(name, pool[rows])),
            units=len(pool),
            control_n=self.control_n(name),
            interval=self.interval(name),
            worst_decile=self.measure_group(name, isolated),
            worst_group=worst_group,
            group=group,
            candidate=name,
            expected=self.average_claims(name) if has_claims else None,
            victims=self.measure_surest(name) if has_claims else None,
            notes=average_notes([one.notes for one in self.outcomes]),
        )

    def find_worst_group(
        self, name: str, groups: Mapping[str, Bools]
    ) -> tuple[str | None, float | None]:
        """Return the group with the highest risk and its value; None if none can be measured."""
        large = {group: mask for group, mask in groups.items() if mask.sum() >= MIN_GROUP_RECORDS}
        values = {
            group: self.measure_group(name, np.flatnonzero(mask)) for group, mask in large.items()
        }
        found = {group: value for group, value in values.items() if value is not None}
        if not found:
            return None, None
        group = pick_worst(found, self.metric.better)
        return group, found[group]

    def average_claims(self, name: str) -> float:
        """Return the value that the attacker computes without any original record."""
        return float(np.mean([one.claims[name][self.select(one)].mean() for one in self.outcomes]))

    def measure_surest(self, name: str) -> float:
        """Return the metric on the tenth of the rows that the attacker is surest of."""
        found = []
        for one in self.outcomes:
            rows = np.flatnonzero(self.select(one))
            count = max(1, round(len(rows) / 10))
            surest = rows[np.argsort(-one.claims[name][rows], kind="stable")[:count]]
            keep = np.isin(np.arange(len(one.draw.Y)), surest)
            found.append(self.measure(one, name, keep))
        return float(np.mean(found))


def mean_or_nan(values: list[float]) -> float:
    """Return the mean, NaN for an empty list."""
    return float(np.mean(values)) if values else float("nan")


def count_effective(records: Ints) -> int:
    """Return the effective number of records among rows: copies of a record add no evidence."""
    _, copies = np.unique(records, return_counts=True)
    return int(copies.sum() ** 2 // (copies**2).sum()) if len(copies) else 0
