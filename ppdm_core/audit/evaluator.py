"""One metric of one attack on all draws: from the estimates to the figures of a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import OriginalTable
from ppdm_core.audit.scores import (
    Figures,
    average_notes,
    average_persons,
    pick_worst,
)
from ppdm_core.audit.simulation import TrialOutcome
from ppdm_core.metrics import AttackMetric
from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.intervals import IntervalAtLevel
from ppdm_core.numerics.mean_limits import mean_interval

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
    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        """Return what the metric is given of one candidate: that of the units to ``keep``."""

    @abstractmethod
    def baseline(self, name: str) -> float:
        """Return the metric of an attacker who ignores the release."""

    def measure(self, outcome: TrialOutcome, name: str, keep: Bools) -> float:
        """Return the metric of one candidate on the units to ``keep``."""
        return float(self.metric.measure(*self.select_inputs(outcome, name, keep)))

    def measure_each(self, outcome: TrialOutcome, name: str, keep: Bools) -> Floats:
        """Return the values of these units, of which the metric is the mean."""
        metric: Any = self.metric  # one that has them
        found = metric.each(*self.select_inputs(outcome, name, keep))
        return np.asarray(found.reshape(len(found), -1).mean(axis=1))

    @property
    def names(self) -> list[str]:
        """The candidates of the scenario, on any draw."""
        return list(dict.fromkeys(k for one in self.outcomes for k in one.estimates(self.scenario)))

    def list_outcomes(self, name: str) -> list[TrialOutcome]:
        """Return the draws that have this candidate and a unit that counts; small ones may not."""
        offered = (one for one in self.outcomes if name in one.estimates(self.scenario))
        return [one for one in offered if self.select(one).any()]

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
        masks = [(one, self.select(one, records)) for one in self.list_outcomes(name)]
        return [self.measure(one, name, keep) for one, keep in masks if keep.any()]

    def measure_group(self, name: str, records: Ints) -> float | None:
        """Return the mean value of a group of records, None if it cannot be measured."""
        masks = [(one, self.select_group(one, records)) for one in self.list_outcomes(name)]
        try:
            found = [self.measure(one, name, keep) for one, keep in masks if keep.any()]
        except NotApplicable:  # for example because all records of the group are zero
            return None
        return float(np.mean(found)) if found else None

    def find_persons(self, name: str) -> Ints:
        """Return the different records behind the units that count."""
        units = np.concatenate([self.units(one) for one in self.list_outcomes(name)])
        return np.unique(units[units >= 0])

    def n(self, name: str) -> int:
        """Return the number of persons: further draws of the same ones add nothing."""
        return len(self.find_persons(name))

    def average_persons(self, name: str) -> Floats:
        """Return the mean value of each person."""
        masks = [(one, self.select(one)) for one in self.list_outcomes(name)]
        units = [self.units(one)[keep] for one, keep in masks]
        return average_persons(units, [self.measure_each(one, name, keep) for one, keep in masks])

    def interval(self, name: str) -> IntervalAtLevel | None:
        """Return the interval as a function of the level; None: by the jackknife."""
        if self.metric.interval_method != "mean":
            return None
        values = self.average_persons(name)
        lowest, highest = self.metric.bound_values(values)
        values = np.clip(values, lowest, highest)  # rounding
        return partial(mean_interval, values, bounds=(lowest, highest))

    def make_figures(self, attack: str, isolated: Ints, groups: Mapping[str, Bools]) -> Figures:
        """Return the figures of the candidate with the highest risk.

        ``isolated`` are the most isolated tenth of the records, ``groups`` the declared ones.
        """
        # Measured for all candidates, so that a broken one is found even if another is worse.
        measured = {name: self.values(name) for name in self.names}
        values = {name: found for name, found in measured.items() if found}
        if not values:
            raise NotApplicable(
                f"The attack {attack} has too few records to be scored on.",
                reason=Reason.TOO_FEW_RECORDS,
            )
        # What also works on persons outside the release is no breach of it.
        controls = {name: self.baseline(name) for name in values if self.has_control}
        risks = {name: float(np.mean(values[name])) - controls.get(name, 0.0) for name in values}
        name = pick_worst(risks, self.metric.better)
        pool, outcomes = self.find_persons(name), self.list_outcomes(name)
        group, worst_group = self.find_worst_group(name, groups)
        has_claims = self.metric.uses_claims and all(name in one.claims for one in outcomes)
        return Figures(
            values=values[name],
            n=self.n(name),
            baseline=controls[name] if controls else self.baseline(name),
            value_on=lambda rows: mean_or_nan(self.values(name, pool[rows])),
            units=len(pool),
            interval=self.interval(name),
            worst_decile=self.measure_group(name, isolated),
            worst_group=worst_group,
            group=group,
            candidate=name,
            expected=self.average_claims(name) if has_claims else None,
            victims=self.measure_surest(name) if has_claims else None,
            choices=len(values),
            chosen="highest" if self.metric.better == "down" else "lowest",
            notes=average_notes([one.notes for one in outcomes]),
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
        found = [one.claims[name][self.select(one)].mean() for one in self.list_outcomes(name)]
        return float(np.mean(found))

    def measure_surest(self, name: str) -> float:
        """Return the metric on the tenth of the rows that the attacker is surest of."""
        found = []
        for one in self.list_outcomes(name):
            rows = np.flatnonzero(self.select(one))
            count = max(1, round(len(rows) / 10))
            surest = rows[np.argsort(-one.claims[name][rows], kind="stable")[:count]]
            keep = np.isin(np.arange(len(one.records)), surest)
            found.append(self.measure(one, name, keep))
        return float(np.mean(found))


def mean_or_nan(values: list[float]) -> float:
    """Return the mean, NaN for an empty list."""
    return float(np.mean(values)) if values else float("nan")


def count_effective(records: Ints) -> int:
    """Return the effective number of records among rows: copies of a record add no evidence."""
    _, copies = np.unique(records, return_counts=True)
    return int(copies.sum() ** 2 // (copies**2).sum()) if len(copies) else 0
