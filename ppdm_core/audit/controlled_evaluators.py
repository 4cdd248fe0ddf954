"""Attacks whose baseline is measured on persons outside the release."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.audit.evaluator import Evaluator, M
from ppdm_core.audit.scores import average_persons
from ppdm_core.audit.simulation import TrialOutcome
from ppdm_core.metrics import InferMetric, PairMetric, SingleOutMetric
from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.intervals import IntervalAtLevel
from ppdm_core.numerics.mean_limits import difference_interval, mean_interval

MIN_OUTSIDERS_PER_MEMBER = 0.5


class ControlledEvaluator(Evaluator[M]):
    """Members count; the same measure on persons outside the release is the baseline."""

    has_control = True
    hides_control_labels = True

    def units(self, outcome: TrialOutcome) -> Ints:
        return np.where(outcome.participants.is_member, outcome.participants.targets, -1)

    def list_controls(self, name: str) -> list[tuple[TrialOutcome, Bools]]:
        """Return the draws, and which targets of each are not in the release."""
        return [(one, ~one.participants.is_member) for one in self.list_outcomes(name)]

    def baseline(self, name: str) -> float:
        found = [self.measure(one, name, keep) for one, keep in self.list_controls(name)]
        return float(np.mean(found))

    def interval(self, name: str) -> IntervalAtLevel | None:
        """Return the interval of the excess over the baseline, added to the baseline."""
        if self.metric.interval_method != "mean":
            return None
        controls = self.list_controls(name)
        values, baseline = self.average_persons(name), self.baseline(name)
        others = average_persons(
            [one.participants.targets[keep] for one, keep in controls],
            [self.measure_each(one, name, keep) for one, keep in controls],
        )

        def find_ends(level: float) -> tuple[float, float]:
            low, high = difference_interval(values, others, level)
            return baseline + low, baseline + high

        return find_ends


class InferenceEvaluator(ControlledEvaluator[InferMetric]):
    """Estimates of one column of a target from its other columns."""

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        truth = self.truth.table[outcome.participants.targets[keep], :-1]
        return self.estimate(outcome, name)[keep], truth, self.truth.schema, self.epsilon


class PairEvaluator(ControlledEvaluator[PairMetric]):
    """Lines of two files that are joined through the release."""

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        return self.estimate(outcome, name)[keep], outcome.participants.targets[keep]


class SinglingOutEvaluator(Evaluator[SingleOutMetric]):
    """Units are statements, which are tried on every record and belong to none beforehand.

    Persons whose records the attacker knew before do not count: no release singles them out.
    """

    has_control = True

    def units(self, outcome: TrialOutcome) -> Ints:
        return np.zeros(0, dtype=np.int64)

    def select(self, outcome: TrialOutcome, records: Ints | None = None) -> Bools:
        """Return which records of the original table are in the draw, and were not known before."""
        return self.is_member(outcome) & ~self.is_any(outcome.participants.known)

    def is_member(self, outcome: TrialOutcome) -> Bools:
        assert outcome.draw.members is not None
        return self.is_any(outcome.draw.members)

    def is_any(self, records: Ints) -> Bools:
        return np.isin(np.arange(len(self.truth.X)), records)

    def split_persons(self, outcome: TrialOutcome) -> tuple[Floats, Floats]:
        """Return the records of persons in the draw, and those of persons outside it."""
        table = self.truth.table
        return table[self.select(outcome)], table[~self.is_member(outcome)]

    def select_group(self, outcome: TrialOutcome, records: Ints) -> Bools:
        return np.zeros(0, dtype=np.bool_)

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        return self.estimate(outcome, name), self.truth.table[keep]

    def baseline(self, name: str) -> float:
        if self.count_outsiders_per_member() < MIN_OUTSIDERS_PER_MEMBER:
            raise NotApplicable(
                "Singling out needs about as many persons outside the release as inside.",
                reason=Reason.NO_CONTROL,
            )
        found = [
            self.metric.baseline(self.estimate(one, name), *self.split_persons(one))
            for one in self.list_outcomes(name)
        ]
        return float(np.mean(found))

    def interval(self, name: str) -> IntervalAtLevel | None:
        """Return the interval of the excess of the same statements, added to the baseline.

        The statements of further draws are about the same persons, so that all draws together
        count as much as the one with the fewest statements.
        """
        if self.metric.interval_method != "mean":
            return None
        excess, counts = [], []
        outcomes, n, baseline = self.list_outcomes(name), self.n(name), self.baseline(name)
        for one in outcomes:
            statements, (own, others) = self.estimate(one, name), self.split_persons(one)
            held = self.metric.each(statements, own)
            excess.append(held - self.metric.chances(statements, own, others))
            counts.append(np.full(len(held), n / len(outcomes) / len(held)))
        found, weights = np.concatenate(excess), np.concatenate(counts)
        bounds = -max(1.0, 1.0 / self.count_outsiders_per_member()), 1.0

        def find_ends(level: float) -> tuple[float, float]:
            low, high = mean_interval(found, level, bounds, weights)
            return baseline + low, baseline + high

        return find_ends

    def count_outsiders_per_member(self) -> float:
        """Return how many persons outside a draw there are for one inside, at least."""
        return min(
            float(np.sum(~self.is_member(one)) / np.sum(self.select(one))) for one in self.outcomes
        )

    def n(self, name: str) -> int:
        return min(len(self.estimate(one, name)) for one in self.list_outcomes(name))
