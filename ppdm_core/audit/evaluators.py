"""What each attack goal is scored on: which estimates count, against which truth and baseline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import OriginalTable
from ppdm_core.audit.scores import IntervalAtLevel, pick_worst
from ppdm_core.audit.simulation import TrialOutcome
from ppdm_core.metrics import (
    InferMetric,
    LinkMetric,
    MemberMetric,
    NormMetric,
    PairMetric,
    ReconstructMetric,
    SingleOutMetric,
    SourceMetric,
    column_mean_guess,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import Goal
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason

Mask = NDArray[np.bool_]
M = TypeVar("M")  # the metrics of a goal
MIN_OUTSIDERS_PER_MEMBER = 0.5


class Evaluator(ABC, Generic[M]):
    """The estimates of one attack on all draws.

    A unit is what an estimate is about: a released row or a target. Records that the attacker
    knew before do not count: their units are numbered -1.
    """

    has_control = False  # the baseline is measured on persons outside the release

    def __init__(
        self, truth: OriginalTable, outcomes: list[TrialOutcome], epsilon: float, scenario: str
    ) -> None:
        self.truth, self.outcomes = truth, outcomes
        self.epsilon, self.scenario = epsilon, scenario

    @property
    def names(self) -> list[str]:
        return list(self.outcomes[0].estimates(self.scenario))

    @abstractmethod
    def units(self, outcome: TrialOutcome) -> Ints:
        """Return the record behind each unit."""

    @abstractmethod
    def measure(self, metric: M, outcome: TrialOutcome, name: str, keep: Mask) -> float:
        """Return the metric of one candidate on the units to ``keep``."""

    @abstractmethod
    def baseline(self, metric: M, name: str) -> float:
        """Return the metric of an attacker who ignores the release."""

    def estimate(self, outcome: TrialOutcome, name: str) -> NDArray[Any]:
        """Return one candidate of the scenario."""
        return outcome.estimates(self.scenario)[name]

    def select_group(self, outcome: TrialOutcome, records: Ints) -> Mask:
        """Return the units that measure the risk of these records."""
        return np.isin(self.units(outcome), records)

    def pool(self) -> Ints:
        """Return every record that counts in some draw."""
        found = np.unique(np.concatenate([self.units(one) for one in self.outcomes]))
        return found[found >= 0]

    def values(self, metric: M, name: str, records: Ints | None = None) -> list[float]:
        """Return one value per draw, leaving out draws in which no such record has a unit."""
        found = []
        for outcome in self.outcomes:
            units = self.units(outcome)
            keep = units >= 0 if records is None else np.isin(units, records)
            if self.has_enough_units(outcome, keep):
                found.append(self.measure(metric, outcome, name, keep))
        return found

    def has_enough_units(self, outcome: TrialOutcome, keep: Mask) -> bool:
        return bool(keep.any())

    def measure_group(self, metric: M, name: str, records: Ints) -> float | None:
        """Return the mean value of a group of records, None if it cannot be measured."""
        masks = [(one, self.select_group(one, records)) for one in self.outcomes]
        try:
            found = [self.measure(metric, one, name, keep) for one, keep in masks if keep.any()]
        except NotApplicable:  # for example because all records of the group are zero
            return None
        return float(np.mean(found)) if found else None

    def n(self, name: str) -> int:
        """Return the effective number of persons: further draws of the same ones add nothing."""
        units = np.concatenate([self.units(one) for one in self.outcomes])
        return count_effective(units[units >= 0])

    def control_n(self, name: str) -> int | None:
        """Return the number of persons behind the baseline, None if it was not measured."""
        return None

    def interval(self, metric: M, name: str) -> IntervalAtLevel | None:
        """Return the metric's own interval as a function of the level, None if it has none."""
        return None


class RowEvaluator(Evaluator[M]):
    """Units are released rows."""

    def units(self, outcome: TrialOutcome) -> Ints:
        records = outcome.draw.records
        return np.where(np.isin(records, outcome.participants.unknown), records, -1)


class ReconstructionEvaluator(RowEvaluator[ReconstructMetric]):
    """Estimates of the original values of each released row."""

    def measure(
        self, metric: ReconstructMetric, outcome: TrialOutcome, name: str, keep: Mask
    ) -> float:
        truth, X_hat = self.truth, self.estimate(outcome, name)[keep]
        X = truth.X[outcome.draw.records[keep]]
        return float(metric.measure(X, X_hat, truth.schema, self.epsilon, truth.spread))

    def baseline(self, metric: ReconstructMetric, name: str) -> float:
        truth, X = self.truth, self.truth.X[self.outcomes[0].participants.unknown]
        return measure_best_constant(
            metric.better,
            truth.X,
            lambda x: metric.measure(
                X, np.broadcast_to(x, X.shape), truth.schema, self.epsilon, truth.spread
            ),
        )


class NormEvaluator(RowEvaluator[NormMetric]):
    """Estimates of the length of the record behind each released row."""

    def measure(self, metric: NormMetric, outcome: TrialOutcome, name: str, keep: Mask) -> float:
        length = np.linalg.norm(self.truth.X[outcome.draw.records[keep]], axis=1)
        return float(metric.measure(length, self.estimate(outcome, name)[keep], self.epsilon))

    def baseline(self, metric: NormMetric, name: str) -> float:
        length = np.linalg.norm(self.truth.X, axis=1)
        scored = length[self.outcomes[0].participants.unknown]
        return measure_best_constant(
            metric.better,
            length[:, None],
            lambda x: metric.measure(scored, np.full(len(scored), x[0]), self.epsilon),
        )


class SourceEvaluator(RowEvaluator[SourceMetric]):
    """Estimates of the record behind each released row."""

    def units(self, outcome: TrialOutcome) -> Ints:
        records = outcome.draw.records
        return np.where(np.isin(records, outcome.participants.targets), records, -1)

    def measure(self, metric: SourceMetric, outcome: TrialOutcome, name: str, keep: Mask) -> float:
        claims, found = outcome.claims[name][keep], self.estimate(outcome, name)[keep]
        return float(metric.measure(found, claims, self.units(outcome)[keep]))

    def baseline(self, metric: SourceMetric, name: str) -> float:
        return float(metric.baseline(len(self.outcomes[0].participants.targets)))


class TargetEvaluator(Evaluator[M]):
    """Units are the persons that the attacker asks about."""

    def units(self, outcome: TrialOutcome) -> Ints:
        return outcome.participants.targets


class LinkEvaluator(TargetEvaluator[LinkMetric]):
    """Rows that are linked to the targets."""

    def units(self, outcome: TrialOutcome) -> Ints:
        """Return the targets, without those that were never drawn and have no row to find."""
        targets = outcome.participants.targets
        return np.where(np.isin(targets, outcome.draw.records), targets, -1)

    def measure(self, metric: LinkMetric, outcome: TrialOutcome, name: str, keep: Mask) -> float:
        targets = outcome.participants.targets
        return float(metric.measure(self.estimate(outcome, name)[keep], targets[keep]))

    def baseline(self, metric: LinkMetric, name: str) -> float:
        """Measure a row picked at random, among those with the person's label if it is known."""
        outcome = self.outcomes[0]
        rows = self.truth.label[np.unique(outcome.draw.records)]
        if self.scenario == "partial":
            return float(metric.baseline(len(rows)))
        persons = self.units(outcome)
        wanted = self.truth.label[persons[persons >= 0]]
        return float(np.mean([metric.baseline(int(np.sum(rows == code))) for code in wanted]))


class MembershipEvaluator(TargetEvaluator[MemberMetric]):
    """Scores of how likely each target is in the release."""

    def has_enough_units(self, outcome: TrialOutcome, keep: Mask) -> bool:
        """Return whether both members and other persons are among the units."""
        kinds = outcome.participants.is_member[keep]
        return bool(kinds.any() and not kinds.all())

    def select_group(self, outcome: TrialOutcome, records: Ints) -> Mask:
        """Return these members and all targets that are not in the release."""
        roles = outcome.participants
        in_group = np.isin(roles.targets, records) & roles.is_member
        return in_group | ~roles.is_member if in_group.any() else in_group

    def measure(self, metric: MemberMetric, outcome: TrialOutcome, name: str, keep: Mask) -> float:
        is_member = outcome.participants.is_member
        return float(metric.measure(self.estimate(outcome, name)[keep], is_member[keep]))

    def baseline(self, metric: MemberMetric, name: str) -> float:
        roles = [outcome.participants for outcome in self.outcomes]
        return float(np.mean([metric.baseline(each.is_member) for each in roles]))

    def interval(self, metric: MemberMetric, name: str) -> IntervalAtLevel:
        outcomes = [
            one for one in self.outcomes if self.has_enough_units(one, self.units(one) >= 0)
        ]
        asked = [(self.estimate(one, name), one.participants.is_member) for one in outcomes]
        roles = [one.participants for one in outcomes]
        inside = np.concatenate([each.targets[each.is_member] for each in roles])
        outside = np.concatenate([each.targets[~each.is_member] for each in roles])
        return partial(metric.interval, asked, count_effective(inside), count_effective(outside))


class ControlledEvaluator(TargetEvaluator[M]):
    """Members count; the same measure on persons outside the release is the baseline."""

    has_control = True

    def units(self, outcome: TrialOutcome) -> Ints:
        roles = outcome.participants
        return np.where(roles.is_member, roles.targets, -1)

    def baseline(self, metric: M, name: str) -> float:
        masks = [(one, ~one.participants.is_member) for one in self.outcomes]
        return float(np.mean([self.measure(metric, one, name, keep) for one, keep in masks]))

    def control_n(self, name: str) -> int:
        roles = [outcome.participants for outcome in self.outcomes]
        return count_effective(np.concatenate([each.targets[~each.is_member] for each in roles]))


class InferenceEvaluator(ControlledEvaluator[InferMetric]):
    """Estimates of one column of a target from its other columns."""

    def measure(self, metric: InferMetric, outcome: TrialOutcome, name: str, keep: Mask) -> float:
        truth = self.truth.table[outcome.participants.targets[keep], :-1]
        guess = self.estimate(outcome, name)[keep]
        return float(metric.measure(guess, truth, self.truth.schema, self.epsilon))


class PairEvaluator(ControlledEvaluator[PairMetric]):
    """Lines of two files that are joined through the release."""

    def measure(self, metric: PairMetric, outcome: TrialOutcome, name: str, keep: Mask) -> float:
        targets = outcome.participants.targets
        return float(metric.measure(self.estimate(outcome, name)[keep], targets[keep]))


class SinglingOutEvaluator(Evaluator[SingleOutMetric]):
    """Units are statements, which are tried on every record and belong to none beforehand."""

    has_control = True

    def units(self, outcome: TrialOutcome) -> Ints:
        return np.zeros(0, dtype=np.int64)

    def values(
        self, metric: SingleOutMetric, name: str, records: Ints | None = None
    ) -> list[float]:
        return [self.measure(metric, one, name, self.select_members(one)) for one in self.outcomes]

    def measure(
        self, metric: SingleOutMetric, outcome: TrialOutcome, name: str, keep: Mask
    ) -> float:
        return float(metric.measure(self.estimate(outcome, name), self.truth.table[keep]))

    def baseline(self, metric: SingleOutMetric, name: str) -> float:
        found = []
        for outcome in self.outcomes:
            inside = self.select_members(outcome)
            if count_outsiders_per_member(inside) < MIN_OUTSIDERS_PER_MEMBER:
                raise NotApplicable(
                    "Singling out needs about as many persons outside the release as inside.",
                    reason=Reason.NO_CONTROL,
                )
            members, others = self.truth.table[inside], self.truth.table[~inside]
            found.append(float(metric.baseline(self.estimate(outcome, name), members, others)))
        return float(np.mean(found))

    def select_members(self, outcome: TrialOutcome) -> Mask:
        """Return which records of the original table are in the draw."""
        members = outcome.draw.members
        assert members is not None
        return np.isin(np.arange(len(self.truth.X)), members)

    def n(self, name: str) -> int:
        return min(len(self.estimate(one, name)) for one in self.outcomes)

    def control_n(self, name: str) -> int:
        """Return the statements, fewer where there are fewer persons outside the release.

        What fewer persons outside show is scaled up, and its errors with it.
        """
        fewest = min(count_outsiders_per_member(self.select_members(one)) for one in self.outcomes)
        return max(1, int(self.n(name) * min(1.0, fewest)))


EVALUATORS: dict[Goal, type[Evaluator[Any]]] = {
    "reconstruct": ReconstructionEvaluator,
    "norms": NormEvaluator,
    "link": LinkEvaluator,
    "source": SourceEvaluator,
    "member": MembershipEvaluator,
    "infer": InferenceEvaluator,
    "pair": PairEvaluator,
    "single_out": SinglingOutEvaluator,
}
GOALS_WITH_OUTSIDERS = frozenset({"member", "infer", "pair", "single_out"})


def count_outsiders_per_member(inside: Mask) -> float:
    """Return how many persons outside the release there are for one inside."""
    return float(np.sum(~inside) / np.sum(inside))


def measure_best_constant(better: str, X: Floats, measure: Callable[[Floats], float]) -> float:
    """Return what an attacker gets who ignores the release and answers one value for everybody.

    The attacker knows the population: its means, its medians, its commonest values (the middle
    one of several equally common values), and which of them serves best.
    """
    guesses = {
        "mean": column_mean_guess(X)[0],
        "median": np.median(X, axis=0),
        "mode": np.array([find_mode(column) for column in X.T]),
    }
    found = {name: float(measure(x)) for name, x in guesses.items()}
    return found[pick_worst(found, better)]


def find_mode(column: Floats) -> float:
    """Return the commonest value, the middle one of several."""
    value, count = np.unique(column, return_counts=True)
    modes = value[count == count.max()]
    return float(modes[len(modes) // 2])


def count_effective(records: Ints) -> int:
    """Return the effective number of records among rows: copies of a record add no evidence."""
    _, copies = np.unique(records, return_counts=True)
    return int(copies.sum() ** 2 // (copies**2).sum()) if len(copies) else 0
