"""The audit: plays each attack against shadow draws and scores what it got.

Attacks that tell people in the release from people outside it play on splits: draws of a random
half, with the other half as the control.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.certifiable import judged_level
from ppdm_core.audit.evaluators import OUTSIDERS_NEEDED, SCORERS, Scorer
from ppdm_core.audit.scores import Figures, mean_notes, pick_worst, scored
from ppdm_core.audit.simulation import Draw, Past, Played, Stage, Truth, cast_all, cast_split
from ppdm_core.audit.utility import compare, figures_of
from ppdm_core.metrics import METRICS, AttackMetric, Compared, Metric
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import Attack, Estimate, Explained, Goal
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import isolated_tenth

READ_WORDS = frozenset({"record_linkage", "attribute_inference", "frequency_error"})  # no numbers
QUICK = frozenset({"knn_accuracy", "distance_loss"})  # what recipients get, at a glance
SCENARIOS = {
    "partial": " Here only half of the columns are known.",
    "leaked": " Here the key has leaked.",
    "left": " Here people who left are looked for, among as many rows as are gone.",
}
MOST_RECONSTRUCTIONS = 4  # the best ones, which linkers and others build on
MOST_ON_SPLITS = 2  # there are more splits than draws
FLAT = 1e-9  # of a column's range; what differs by less is one answer
SMALLEST_GROUP = 20  # people; what is measured on fewer tells nothing


def audit_names(policy: Policy) -> tuple[str, ...]:
    """What runs: everything, or in a quick audit what somebody asked for, and quick utility."""
    if policy.effort != "quick":
        return every_audit()
    asked = {*policy.required, *(limit.split(".")[0] for limit in policy.limits)}
    return tuple(name for name in every_audit() if name in asked | QUICK)


def every_audit() -> tuple[str, ...]:
    """Attacks first, because linkage builds on reconstructions; then what the release is like."""
    of_release = tuple(name for name, metric in METRICS.items() if metric.goal == "release")
    return (*ATTACKS, *of_release)


class Auditor:
    def __init__(
        self,
        truth: Truth,
        draws: Sequence[Draw],
        policy: Policy,
        seed: bytes,
        splits: Sequence[Draw] = (),
        past: Past | None = None,
    ) -> None:
        if not draws or len(truth.X) == 0:
            raise NotApplicable("There is nothing to audit.")
        self.truth, self.policy, self.seed = truth, policy, seed
        self.draws, self.splits, self.past = tuple(draws), tuple(splits), past
        self.level = judged_level(policy)
        self._played: dict[tuple[str, bool], list[Played]] = {}

    def rng(self, *name: object) -> np.random.Generator:
        text = "/".join(map(str, name)).encode()
        digest = hashlib.blake2b(text, key=self.seed[:64], digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))

    def run(self, name: str) -> tuple[Score, ...]:
        """All scores of one attack or utility metric; NotApplicable when it has nothing to do."""
        if not self.truth.schema.numeric and name not in READ_WORDS:
            raise NotApplicable(f"{name} works on numbers, and no numeric feature is released.")
        if name in ATTACKS:
            return self._run_attack(ATTACKS[name])
        metric = METRICS[name]
        if metric.goal != "release":
            raise NotApplicable(f"{name} is measured by attacks, not on its own.")
        return tuple(self._scored(*each) for each in figures_of(metric, self.compared))

    @cached_property
    def compared(self) -> list[Compared]:
        return compare(self.truth, self.draws, partial(self.rng, "utility"))

    @cached_property
    def stages(self) -> list[Stage]:
        """Everybody is in the release."""
        n, d = self.truth.X.shape
        cast = cast_all(n, d, self.policy.attacker, self.rng("people"))
        stages = [
            Stage.set(self.truth, draw, cast, self.rng("shuffle", number))
            for number, draw in enumerate(self.draws)
        ]
        return [replace(stage, past=self.past) for stage in stages]

    @cached_property
    def split_stages(self) -> list[Stage]:
        n, d = self.truth.X.shape
        stages = []
        for number, draw in enumerate(self.splits):
            assert draw.members is not None
            rng = self.rng("split", number)
            cast = cast_split(n, d, draw.members, self.policy.attacker, rng)
            stages.append(Stage.set(self.truth, draw, cast, rng))
        return stages

    @cached_property
    def _isolated(self) -> Ints:
        return isolated_tenth(self.truth.X, self.rng("isolated"))

    def play(self, attack: Attack, *, on_splits: bool | None = None) -> list[Played]:
        if on_splits is None:
            on_splits = attack.goal in OUTSIDERS_NEEDED
        key = (attack.name, on_splits)
        if key not in self._played:
            stages = self.split_stages if on_splits else self.stages
            if not stages:
                raise NotApplicable(
                    f"The attack {attack.name} needs people who are not in the release, to compare."
                )
            played = [self._play(attack, i, stage, on_splits) for i, stage in enumerate(stages)]
            check_same_candidates(attack, played)
            self._played[key] = played
        return self._played[key]

    def _play(self, attack: Attack, number: int, stage: Stage, on_splits: bool) -> Played:
        attacker = self.policy.attacker
        view = stage.view(attacker.epsilon, self.policy.effort)
        if attack.needs & {"earlier", "came"}:
            view = stage.with_past(view)
        if "reconstructions" in attack.needs or attack.goal == "link":
            found = self._reconstructions(number, stage, on_splits)
            view = replace(view, reconstructions=found)
        place = (attack.name, number, *(["split"] if on_splits else []))
        estimate = attack.attack(view, self.rng(*place))
        if isinstance(attack, Explained):
            behind = self.truth.X[stage.draw.records[stage.shuffle]]
            notes = {**estimate.notes, **attack.explain(view, behind)}
            estimate = replace(estimate, notes=notes)
        if on_splits and attack.goal == "reconstruct":  # of which the best alone is used again
            name = dict(self._best_reconstructions)[attack.name]
            if name not in estimate.candidates:  # a half may be too small for it
                raise NotApplicable(f"The attack {attack.name} has too few people in a half.")
            estimate = Estimate({name: estimate.candidates[name]})
        return stage.played(attack.goal, estimate)

    def _reconstructions(self, number: int, stage: Stage, on_splits: bool) -> dict[str, Floats]:
        """The best guesses of the original columns, in the order of the view."""
        found = {}
        best = self._best_on_splits if on_splits else self._best_reconstructions
        most = MOST_ON_SPLITS if on_splits else MOST_RECONSTRUCTIONS
        for attack, name in best[:most]:
            try:
                played = self.play(ATTACKS[attack], on_splits=on_splits)[number]
            except NotApplicable:  # too few people in a half, say
                continue
            X_hat = played.candidates[name][stage.shuffle].copy()
            X_hat.flags.writeable = False
            found[f"{attack}/{name}"] = X_hat
        return found

    @cached_property
    def _best_reconstructions(self) -> list[tuple[str, str]]:
        """Of each attack the candidate with the smallest error: an oracle's choice."""
        if not self.truth.schema.numeric:
            return []
        errors = {}
        names = {*audit_names(self.policy), "transform_inverse"}
        for attack in ATTACKS.values():
            if attack.goal != "reconstruct" or attack.name not in names:
                continue
            try:
                played = self.play(attack)
            except NotApplicable:
                continue
            means = {
                name: self.error_of(played, name)
                for name in played[0].candidates
                if self._tells_apart(played[0], name)
            }
            if means:
                name = min(means, key=means.__getitem__)
                errors[attack.name, name] = means[name]
        return sorted(errors, key=errors.__getitem__)

    def _tells_apart(self, one: Played, name: str) -> bool:
        """One answer for everybody but the people who were known before tells of nobody."""
        X_hat = one.candidates[name][~np.isin(one.draw.records, one.cast.known)]
        return bool(np.any(np.ptp(X_hat, axis=0) > FLAT * self.truth.spread))

    @cached_property
    def _best_on_splits(self) -> list[tuple[str, str]]:
        """Of these the best in the first half: there, a sample holds nobody of the release."""
        errors = {}
        for attack, name in self._best_reconstructions[:MOST_RECONSTRUCTIONS]:
            try:
                played = self._play(ATTACKS[attack], 0, self.split_stages[0], on_splits=True)
            except NotApplicable:
                continue
            if name in played.candidates:
                errors[attack, name] = self.error_of([played], name)
        return sorted(errors, key=errors.__getitem__)

    def error_of(self, played: list[Played], name: str) -> float:
        return mean_error(self.truth.X, played, name)

    def truth_behind(self, goal: Goal) -> Truth:
        """The people whom answers to this goal are about."""
        return self.truth

    def _run_attack(self, attack: Attack) -> tuple[Score, ...]:
        played, truth = self.play(attack), self.truth_behind(attack.goal)
        found: list[Score] = []
        why: NotApplicable | None = None
        for scenario in ("", *played[0].scenarios):
            scorer = SCORERS[attack.goal](truth, played, self.policy.attacker.epsilon, scenario)
            if not scorer.names:
                continue
            for metric in METRICS.values():
                if metric.goal != attack.goal:
                    continue
                try:
                    found.append(self._score_attack(attack, metric, scorer))
                except NotApplicable as error:  # of this metric alone
                    why = error
        if not found and why is not None:
            raise why
        return tuple(found)

    def _score_attack(self, attack: Attack, metric: AttackMetric, scorer: Scorer) -> Score:
        # Measured for all, so that a broken candidate is found even beside a worse one.
        values = {name: scorer.values(metric, name) for name in scorer.names}
        if not all(values.values()):
            raise NotApplicable(f"The attack {attack.name} has too few people to be scored on.")
        # What also works on people outside the release is no breach of it.
        controlled = scorer.names if scorer.has_control else []
        baselines = {name: scorer.baseline(metric, name) for name in controlled}
        means = {
            name: float(np.mean(found)) - baselines.get(name, 0.0) for name, found in values.items()
        }
        name = pick_worst(means, metric.better)
        pool = scorer.pool()
        group, worst = self._worst_group(metric, scorer, name)
        figures = Figures(
            values=values[name],
            n=scorer.n(name),
            baseline=baselines[name] if controlled else scorer.baseline(metric, name),
            value_on=lambda rows: mean_or_nan(scorer.values(metric, name, pool[rows])),
            units=len(pool),
            control_n=scorer.control_n(name),
            ends=scorer.ends(metric, name),
            worst_decile=scorer.value_of_group(metric, name, self._isolated),
            worst_group=worst,
            group=group,
            candidate=name,
            expected=claimed(scorer, name) if metric.name == "breach_rate" else None,
            victims=on_victims(scorer, metric, name) if metric.name == "breach_rate" else None,
            notes=mean_notes([one.notes for one in scorer.played]),
        )
        parts = (attack.name, scorer.scenario, metric.name)
        story = attack.story + SCENARIOS.get(scorer.scenario, "")
        return self._scored(metric, ".".join(filter(None, parts)), figures, story)

    def _worst_group(
        self, metric: AttackMetric, scorer: Scorer, name: str
    ) -> tuple[str | None, float | None]:
        found = {}
        for words, is_in in self.truth.groups.items():
            if is_in.sum() >= SMALLEST_GROUP:
                value = scorer.value_of_group(metric, name, np.flatnonzero(is_in))
                if value is not None:
                    found[words] = value
        if not found:
            return None, None
        words = pick_worst(found, metric.better)
        return words, found[words]

    def _scored(self, metric: Metric, name: str, figures: Figures, story: str = "") -> Score:
        return scored(
            metric,
            name,
            figures,
            level=self.level,
            rng=self.rng("jackknife", name),
            story=story.format(k=min(self.policy.attacker.known_records, len(self.truth.X) - 2)),
            epsilon=self.policy.attacker.epsilon,
        )


def check_same_candidates(attack: Attack, played: list[Played]) -> None:
    """A candidate that only some draws have would be left out of the score."""
    first = played[0]
    for one in played:
        same = set(one.candidates) == set(first.candidates)
        for name, answers in first.scenarios.items():
            same = same and set(one.scenarios.get(name, ())) == set(answers)
        if not same or set(one.scenarios) != set(first.scenarios):
            raise Defect(f"The attack {attack.name} offers other candidates on another draw.")


def mean_or_nan(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def mean_error(X: Floats, played: list[Played], name: str) -> float:
    found = []
    for one in played:
        records = one.draw.records
        rows = np.isin(records, one.cast.unknown)
        error = np.linalg.norm(X[records[rows]] - one.candidates[name][rows], axis=1)
        found.append(float(np.mean(error)))
    return float(np.mean(found))


def claimed(scorer: Scorer, name: str) -> float | None:
    """The breach rate that the attacker can compute without knowing anybody's record."""
    if any(name not in one.claims for one in scorer.played):
        return None
    return float(
        np.mean([one.claims[name][scorer.units(one) >= 0].mean() for one in scorer.played])
    )


def on_victims(scorer: Scorer, metric: AttackMetric, name: str) -> float | None:
    """On the tenth of the rows that the attacker itself is surest of."""
    if any(name not in one.claims for one in scorer.played):
        return None
    found = []
    for one in scorer.played:
        rows = np.flatnonzero(scorer.units(one) >= 0)
        count = max(1, round(len(rows) / 10))
        surest = rows[np.argsort(-one.claims[name][rows], kind="stable")[:count]]
        keep = np.isin(np.arange(len(one.draw.Y)), surest)
        found.append(scorer.measure(metric, one, name, keep))
    return float(np.mean(found))
