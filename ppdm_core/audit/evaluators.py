"""What each attack goal is scored on: which estimates count, against which truth and baseline."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ppdm_core.audit.controlled_evaluators import (
    InferenceEvaluator,
    PairEvaluator,
    SinglingOutEvaluator,
)
from ppdm_core.audit.evaluator import Evaluator, count_effective
from ppdm_core.audit.label_risk import compute_chances, count_labels, select_first_rows
from ppdm_core.audit.simulation import TrialOutcome
from ppdm_core.metrics import (
    AttackMetric,
    LinkMetric,
    MemberMetric,
    NormMetric,
    ReconstructMetric,
    SourceMetric,
)
from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.attacker import SUREST_SHARES, Goal
from ppdm_core.numerics.intervals import IntervalAtLevel


class ReconstructionEvaluator(Evaluator[ReconstructMetric]):
    """Estimates of the original values of each released row."""

    def units(self, outcome: TrialOutcome) -> Ints:
        return mark_others(outcome.records, outcome.participants.unknown)

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        X, X_hat = self.truth.X[outcome.records[keep]], self.estimate(outcome, name)[keep]
        return X, X_hat, self.truth.spread, self.epsilon

    def interval(self, name: str) -> IntervalAtLevel | None:
        if self.metric.interval_method != "own":
            return super().interval(name)
        tables = []
        for one in self.list_outcomes(name):
            units = self.units(one)
            person, first = np.unique(units, return_index=True)  # one row of each: independent
            keep = np.isin(np.arange(len(units)), first[person >= 0])
            tables.append(self.select_inputs(one, name, keep)[:2])
        return partial(self.metric.interval, tables, self.truth.spread)

    def baseline(self, name: str) -> float:
        X, ranges = self.truth.X[self.outcomes[0].participants.unknown], self.truth.spread

        def measure(x: Floats) -> float:
            return self.metric.measure(X, np.broadcast_to(x, X.shape), ranges, self.epsilon)

        return measure_best_constant(self.metric.better, self.truth.X, measure)


class NormEvaluator(Evaluator[NormMetric]):
    """Estimates of the length of the record behind each released row."""

    units = ReconstructionEvaluator.units

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        length = np.linalg.norm(self.truth.X[outcome.records[keep]], axis=1)
        return length, self.estimate(outcome, name)[keep], self.epsilon

    def baseline(self, name: str) -> float:
        length = np.linalg.norm(self.truth.X, axis=1)
        scored = length[self.outcomes[0].participants.unknown]

        def measure(x: Floats) -> float:
            return self.metric.measure(scored, np.full(len(scored), x[0]), self.epsilon)

        return measure_best_constant(self.metric.better, length[:, None], measure)


class SourceEvaluator(Evaluator[SourceMetric]):
    """Estimates of the record behind each released row."""

    def units(self, outcome: TrialOutcome) -> Ints:
        return mark_others(outcome.draw.records, outcome.participants.targets)

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        guess, claims = self.estimate(outcome, name)[keep], outcome.claims[name][keep]
        return guess, claims, self.units(outcome)[keep]

    def baseline(self, name: str) -> float:
        return self.metric.baseline(len(self.outcomes[0].participants.targets))


class LinkEvaluator(Evaluator[LinkMetric]):
    """Rows that are linked to the targets; a target that was never drawn has no row to find."""

    def units(self, outcome: TrialOutcome) -> Ints:
        found = mark_others(outcome.participants.targets, outcome.draw.records)
        if self.scenario in SUREST_SHARES:
            return np.where(self.estimate(outcome, self.scenario) >= 0, found, -1)
        return found

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        return self.estimate(outcome, name)[keep], outcome.participants.targets[keep]

    def baseline(self, name: str) -> float:
        """Measure a row picked at random, among those with the person's label if it is known."""
        outcome = self.list_outcomes(name)[0]
        records, labels = select_first_rows(self.truth, outcome.draw)
        rows = count_labels(outcome.draw, labels, with_partners=not outcome.knows_partners)
        if self.scenario == "partial" or self.is_label_column:
            return self.metric.baseline(int(rows[1].sum()))
        targets = outcome.participants.targets[self.select(outcome)]
        own = labels[np.searchsorted(records, targets)]
        return float(np.mean(compute_chances(self.truth.label[targets], rows, own)))


class MembershipEvaluator(Evaluator[MemberMetric]):
    """Scores of how likely each target is in the release."""

    def units(self, outcome: TrialOutcome) -> Ints:
        return outcome.participants.targets

    def select(self, outcome: TrialOutcome, records: Ints | None = None) -> Bools:
        keep = super().select(outcome, records)
        kinds = outcome.participants.is_member[keep]
        return keep if kinds.any() and not kinds.all() else np.zeros_like(keep)

    def select_group(self, outcome: TrialOutcome, records: Ints) -> Bools:
        """Return these members and all targets that are not in the release."""
        roles = outcome.participants
        in_group = np.isin(roles.targets, records) & roles.is_member
        return in_group | ~roles.is_member if in_group.any() else in_group

    def select_inputs(self, outcome: TrialOutcome, name: str, keep: Bools) -> tuple[Any, ...]:
        return self.estimate(outcome, name)[keep], outcome.participants.is_member[keep]

    def baseline(self, name: str) -> float:
        roles = [one.participants for one in self.list_outcomes(name)]
        return float(np.mean([self.metric.baseline(each.is_member) for each in roles]))

    def interval(self, name: str) -> IntervalAtLevel:
        outcomes = self.list_outcomes(name)
        trials = [(self.estimate(one, name), one.participants.is_member) for one in outcomes]
        counts = (count_targets(outcomes, inside=inside) for inside in (True, False))
        return partial(self.metric.interval, trials, *counts)


EVALUATORS: dict[Goal, type[Evaluator[AttackMetric]]] = {
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


def count_targets(outcomes: list[TrialOutcome], *, inside: bool) -> int:
    """Return the effective number of targets that are in the release, or outside it."""
    roles = [one.participants for one in outcomes]
    return count_effective(np.concatenate([p.targets[p.is_member == inside] for p in roles]))


def mark_others(records: Ints, counted: Ints) -> Ints:
    """Return the records with -1 in place of those that do not count."""
    return np.where(np.isin(records, counted), records, -1)


def measure_best_constant(better: str, X: Floats, measure: Callable[[Floats], float]) -> float:
    """Return what an attacker gets who ignores the release and answers one value for everybody.

    The attacker knows the population: its means, its medians, its commonest values (the middle
    one of several equally common values), and which of them serves best.
    """
    mode = np.array([find_mode(column) for column in X.T])
    found = [measure(x) for x in (X.mean(axis=0), np.median(X, axis=0), mode)]
    return max(found) if better == "down" else min(found)


def find_mode(column: Floats) -> float:
    """Return the commonest value, the middle one of several."""
    value, count = np.unique(column, return_counts=True)
    modes = value[count == count.max()]
    return float(modes[len(modes) // 2])
