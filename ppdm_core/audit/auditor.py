"""One audit: the attacks and metrics on some draws of one table.

Attacks that tell persons in the release from persons outside it run on halves: draws of a random
half of the records, with the other half as the control.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ppdm_core.attacks import ATTACKS, Attack, ExplainsError
from ppdm_core.audit.certifiable import widen_level
from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw
from ppdm_core.audit.evaluators import EVALUATORS, GOALS_WITH_OUTSIDERS, Evaluator
from ppdm_core.audit.runner import AuditResult, attempt, choose_audits
from ppdm_core.audit.scores import Figures, average_notes, make_score, pick_worst
from ppdm_core.audit.simulation import (
    AttackTrial,
    TrialOutcome,
    choose_half_participants,
    choose_participants,
)
from ppdm_core.audit.utility import compare, measure_release
from ppdm_core.metrics import METRICS, AttackMetric, Metric, ReleaseComparison
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import Estimate, Goal
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.policy import Policy
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import find_isolated_tenth

SCENARIO_STORIES = {
    "partial": " Here the attacker knows only half of the columns.",
    "leaked": " Here the key has leaked.",
    "left": " Here the attacker looks for persons who left, among as many rows as were removed.",
}
MAX_RECONSTRUCTIONS = 4  # the best ones, which linkers and other attacks build on
MAX_HALF_RECONSTRUCTIONS = 2  # there are more halves than draws
MIN_RELATIVE_SPREAD = 1e-9  # of a column's range; estimates that differ by less are one value
MIN_GROUP_RECORDS = 20  # a figure measured on fewer records says nothing


class Auditor:
    """The attacks and metrics on some draws of one table; results of attacks are cached."""

    def __init__(
        self,
        truth: OriginalTable,
        draws: Sequence[ReleaseDraw],
        policy: Policy,
        seed: bytes,
        halves: Sequence[ReleaseDraw] = (),
        earlier: EarlierReleases | None = None,
    ) -> None:
        if not draws or len(truth.X) == 0:
            raise NotApplicable("There is nothing to audit.", reason=Reason.TOO_FEW_RECORDS)
        self.truth, self.policy, self.seed = truth, policy, seed
        self.draws, self.halves, self.earlier = tuple(draws), tuple(halves), earlier
        self.level = widen_level(policy)
        self._outcomes: dict[tuple[str, bool], list[TrialOutcome]] = {}

    def rng(self, *name: object) -> np.random.Generator:
        """Return the generator of a purpose; the same name gives the same numbers."""
        text = "/".join(map(str, name)).encode()
        digest = hashlib.blake2b(text, key=self.seed[:64], digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))

    def run_one(self, name: str) -> AuditResult:
        """Run one audit and return what it ended in; it never raises."""
        return attempt(lambda: self.run(name))

    def run(self, name: str) -> tuple[Score, ...]:
        """Return all scores of one attack or utility metric."""
        audited = ATTACKS.get(name) or METRICS[name]
        if not self.truth.schema.numeric and "categorical" not in audited.reads:
            raise NotApplicable(
                f"{name} works on numbers, and no numeric feature is released.",
                reason=Reason.NO_NUMERIC_COLUMN,
            )
        if name in ATTACKS:
            return self._run_attack(ATTACKS[name])
        metric = METRICS[name]
        if metric.goal != "release":
            raise NotApplicable(f"{name} is measured by attacks, not on its own.")
        measured = measure_release(metric, self.comparisons)
        return tuple(self._make_score(*each) for each in measured)

    @cached_property
    def comparisons(self) -> list[ReleaseComparison]:
        """Each draw compared with the original table."""
        return compare(self.truth, self.draws, partial(self.rng, "utility"))

    @cached_property
    def trials(self) -> list[AttackTrial]:
        """One trial per draw, with every record in the release."""
        n, d = self.truth.X.shape
        participants = choose_participants(n, d, self.policy.attacker, self.rng("people"))
        trials = [
            AttackTrial.create(self.truth, draw, participants, self.rng("shuffle", number))
            for number, draw in enumerate(self.draws)
        ]
        return [replace(trial, earlier=self.earlier) for trial in trials]

    @cached_property
    def half_trials(self) -> list[AttackTrial]:
        """One trial per half."""
        n, d = self.truth.X.shape
        trials = []
        for number, draw in enumerate(self.halves):
            assert draw.members is not None
            rng = self.rng("split", number)
            participants = choose_half_participants(n, d, draw.members, self.policy.attacker, rng)
            trials.append(AttackTrial.create(self.truth, draw, participants, rng))
        return trials

    @cached_property
    def _isolated(self) -> Ints:
        return find_isolated_tenth(self.truth.X, self.rng("isolated"))

    def run_trials(self, attack: Attack, *, on_halves: bool | None = None) -> list[TrialOutcome]:
        """Run an attack on all draws, or on all halves; ``None``: where its goal is measured."""
        if on_halves is None:
            on_halves = attack.goal in GOALS_WITH_OUTSIDERS
        key = (attack.name, on_halves)
        if key not in self._outcomes:
            trials = self.half_trials if on_halves else self.trials
            if not trials:
                raise NotApplicable(
                    f"The attack {attack.name} needs persons outside the release to compare with.",
                    reason=Reason.NO_CONTROL,
                )
            outcomes = [
                self._run_trial(attack, i, each, on_halves) for i, each in enumerate(trials)
            ]
            check_same_candidates(attack, outcomes)
            self._outcomes[key] = outcomes
        return self._outcomes[key]

    def _run_trial(
        self, attack: Attack, number: int, trial: AttackTrial, on_halves: bool
    ) -> TrialOutcome:
        view = trial.build_view(self.policy.attacker.epsilon, self.policy.effort)
        if attack.needs & {"earlier_releases", "arrival_batches"}:
            view = trial.add_earlier_releases(view)
        if "reconstructions" in attack.needs or attack.goal == "link":
            found = self._reconstructions(number, trial, on_halves)
            view = replace(view, reconstructions=found)
        purpose = (attack.name, number, *(["split"] if on_halves else []))
        estimate = attack.attack(view, self.rng(*purpose))
        if isinstance(attack, ExplainsError):
            X = self.truth.X[trial.draw.records[trial.shuffle]]
            estimate = replace(estimate, notes={**estimate.notes, **attack.explain(view, X)})
        if on_halves and attack.goal == "reconstruct":  # only the best candidate is used again
            name = dict(self._best_reconstructions)[attack.name]
            if name not in estimate.candidates:  # a half may be too small for it
                raise NotApplicable(
                    f"The attack {attack.name} has too few records in a half.",
                    reason=Reason.TOO_FEW_RECORDS,
                )
            estimate = Estimate({name: estimate.candidates[name]})
        return trial.make_outcome(attack.goal, estimate)

    def _reconstructions(
        self, number: int, trial: AttackTrial, on_halves: bool
    ) -> dict[str, Floats]:
        """Return the best estimates of the original columns, in the order of the view."""
        found = {}
        best = self._best_on_halves if on_halves else self._best_reconstructions
        most = MAX_HALF_RECONSTRUCTIONS if on_halves else MAX_RECONSTRUCTIONS
        for attack, name in best[:most]:
            try:
                outcome = self.run_trials(ATTACKS[attack], on_halves=on_halves)[number]
            except NotApplicable:  # for example too few records in a half
                continue
            X_hat = outcome.candidates[name][trial.shuffle].copy()
            X_hat.flags.writeable = False
            found[f"{attack}/{name}"] = X_hat
        return found

    @cached_property
    def _best_reconstructions(self) -> list[tuple[str, str]]:
        """The candidate of each attack with the smallest error, chosen with the truth."""
        if not self.truth.schema.numeric:
            return []
        errors = {}
        audits = choose_audits(self.policy)
        for attack in ATTACKS.values():
            if attack.goal != "reconstruct":
                continue
            if attack.name not in audits and not attack.in_every_audit:
                continue
            try:
                outcomes = self.run_trials(attack)
            except NotApplicable:
                continue
            means = {
                name: self.compute_error(outcomes, name)
                for name in outcomes[0].candidates
                if self._differs_between_records(outcomes[0], name)
            }
            if means:
                name = min(means, key=means.__getitem__)
                errors[attack.name, name] = means[name]
        return sorted(errors, key=errors.__getitem__)

    def _differs_between_records(self, outcome: TrialOutcome, name: str) -> bool:
        """Return whether a candidate is more than one value for all records not known before."""
        is_known = np.isin(outcome.draw.records, outcome.participants.known)
        X_hat = outcome.candidates[name][~is_known]
        return bool(np.any(np.ptp(X_hat, axis=0) > MIN_RELATIVE_SPREAD * self.truth.spread))

    @cached_property
    def _best_on_halves(self) -> list[tuple[str, str]]:
        """The best of these on the first half, where a sample holds no record of the release."""
        errors = {}
        for attack, name in self._best_reconstructions[:MAX_RECONSTRUCTIONS]:
            try:
                outcome = self._run_trial(ATTACKS[attack], 0, self.half_trials[0], on_halves=True)
            except NotApplicable:
                continue
            if name in outcome.candidates:
                errors[attack, name] = self.compute_error([outcome], name)
        return sorted(errors, key=errors.__getitem__)

    def compute_error(self, outcomes: list[TrialOutcome], name: str) -> float:
        """Return how far a reconstruction is from the original records."""
        return average_error(self.truth.X, outcomes, name)

    def find_truth(self, goal: Goal) -> OriginalTable:
        """Return the records that estimates for this goal are about."""
        return self.truth

    def _run_attack(self, attack: Attack) -> tuple[Score, ...]:
        outcomes, truth = self.run_trials(attack), self.find_truth(attack.goal)
        found: list[Score] = []
        last: NotApplicable | None = None
        for scenario in ("", *outcomes[0].scenarios):
            epsilon = self.policy.attacker.epsilon
            evaluator = EVALUATORS[attack.goal](truth, outcomes, epsilon, scenario)
            if not evaluator.names:
                continue
            for metric in METRICS.values():
                if metric.goal != attack.goal:
                    continue
                try:
                    found.append(self._score_attack(attack, metric, evaluator))
                except NotApplicable as why:  # of this metric alone
                    last = why
        if not found and last is not None:
            raise last
        return tuple(found)

    def _score_attack(
        self, attack: Attack, metric: AttackMetric, evaluator: Evaluator[Any]
    ) -> Score:
        # Measured for all candidates, so that a broken one is found even if another is worse.
        values = {name: evaluator.values(metric, name) for name in evaluator.names}
        if not all(values.values()):
            raise NotApplicable(
                f"The attack {attack.name} has too few records to be scored on.",
                reason=Reason.TOO_FEW_RECORDS,
            )
        # What also works on persons outside the release is no breach of it.
        controlled = evaluator.names if evaluator.has_control else []
        baselines = {name: evaluator.baseline(metric, name) for name in controlled}
        means = {
            name: float(np.mean(found)) - baselines.get(name, 0.0) for name, found in values.items()
        }
        name = pick_worst(means, metric.better)
        pool = evaluator.pool()
        group, worst = self._find_worst_group(metric, evaluator, name)
        figures = Figures(
            values=values[name],
            n=evaluator.n(name),
            baseline=baselines[name] if controlled else evaluator.baseline(metric, name),
            value_on=lambda rows: mean_or_nan(evaluator.values(metric, name, pool[rows])),
            units=len(pool),
            control_n=evaluator.control_n(name),
            interval=evaluator.interval(metric, name),
            worst_decile=evaluator.measure_group(metric, name, self._isolated),
            worst_group=worst,
            group=group,
            candidate=name,
            expected=average_claims(evaluator, name) if metric.uses_claims else None,
            victims=measure_surest(evaluator, metric, name) if metric.uses_claims else None,
            notes=average_notes([one.notes for one in evaluator.outcomes]),
        )
        parts = (attack.name, evaluator.scenario, metric.name)
        story = self.describe_attacker(attack) + SCENARIO_STORIES.get(evaluator.scenario, "")
        return self._make_score(metric, ".".join(filter(None, parts)), figures, story)

    def describe_attacker(self, attack: Attack) -> str:
        """Return the sentence that says who the attacker is."""
        return attack.story

    def _find_worst_group(
        self, metric: AttackMetric, evaluator: Evaluator[Any], name: str
    ) -> tuple[str | None, float | None]:
        found = {}
        for group, is_in in self.truth.groups.items():
            if is_in.sum() >= MIN_GROUP_RECORDS:
                value = evaluator.measure_group(metric, name, np.flatnonzero(is_in))
                if value is not None:
                    found[group] = value
        if not found:
            return None, None
        group = pick_worst(found, metric.better)
        return group, found[group]

    def _make_score(self, metric: Metric, name: str, figures: Figures, story: str = "") -> Score:
        return make_score(
            metric,
            name,
            figures,
            level=self.level,
            rng=self.rng("jackknife", name),
            story=story.format(k=min(self.policy.attacker.known_records, len(self.truth.X) - 2)),
            epsilon=self.policy.attacker.epsilon,
        )


def check_same_candidates(attack: Attack, outcomes: list[TrialOutcome]) -> None:
    """Check that all draws have the same candidates: one that is missing would not be scored."""
    first = outcomes[0]
    for one in outcomes:
        same = set(one.candidates) == set(first.candidates)
        for name, estimates in first.scenarios.items():
            same = same and set(one.scenarios.get(name, ())) == set(estimates)
        if not same or set(one.scenarios) != set(first.scenarios):
            raise Defect(f"The attack {attack.name} offers other candidates on another draw.")


def mean_or_nan(values: list[float]) -> float:
    """Return the mean, NaN for an empty list."""
    return float(np.mean(values)) if values else float("nan")


def average_error(X: Floats, outcomes: list[TrialOutcome], name: str) -> float:
    """Return the mean distance of a reconstruction from the original records."""
    found = []
    for one in outcomes:
        records = one.draw.records
        rows = np.isin(records, one.participants.unknown)
        error = np.linalg.norm(X[records[rows]] - one.candidates[name][rows], axis=1)
        found.append(float(np.mean(error)))
    return float(np.mean(found))


def average_claims(evaluator: Evaluator[Any], name: str) -> float | None:
    """Return the breach rate that the attacker computes without any original record."""
    outcomes = evaluator.outcomes
    if any(name not in one.claims for one in outcomes):
        return None
    return float(np.mean([one.claims[name][evaluator.units(one) >= 0].mean() for one in outcomes]))


def measure_surest(evaluator: Evaluator[Any], metric: AttackMetric, name: str) -> float | None:
    """Return the metric on the tenth of the rows that the attacker is surest of."""
    if any(name not in one.claims for one in evaluator.outcomes):
        return None
    found = []
    for one in evaluator.outcomes:
        rows = np.flatnonzero(evaluator.units(one) >= 0)
        count = max(1, round(len(rows) / 10))
        surest = rows[np.argsort(-one.claims[name][rows], kind="stable")[:count]]
        keep = np.isin(np.arange(len(one.draw.Y)), surest)
        found.append(evaluator.measure(metric, one, name, keep))
    return float(np.mean(found))
