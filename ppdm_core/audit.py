"""The audit: plays each attack against shadow draws and scores what it got.

The scorer holds the truth and the alignment; an attack gets neither. Its view is shuffled by a
private permutation, because assignment solvers and argmin favour the identity on ties.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.errors import Defect, NotApplicable
from ppdm_core.intervals import isolated_tenth
from ppdm_core.metrics import (
    METRICS,
    LinkMetric,
    Metric,
    ReconstructMetric,
    ReleaseMetric,
    column_mean_guess,
)
from ppdm_core.policy import Policy
from ppdm_core.scoring import Figures, pick_worst, scored
from ppdm_core.types import (
    Attack,
    AttackerView,
    Codes,
    Floats,
    Ints,
    Known,
    Public,
    Schema,
    Score,
)

MOST_TARGETS = 2_000  # people looked for; the released table they are looked for in is never cut


@dataclass(frozen=True, eq=False)
class Draw:
    """One shadow release of the same records, row-aligned with the truth."""

    Y: Floats  # (n, s)
    public: Public


@dataclass(frozen=True, eq=False)
class Truth:
    X: Floats  # (n, d) scaled
    label: Codes  # (n,)
    schema: Schema


@dataclass(frozen=True, eq=False)
class Played:
    """One attack on one draw, put back into the order of the truth."""

    candidates: Mapping[str, Any]
    link_truth: Ints  # position of each target in the view
    claims: Mapping[str, Floats]  # the attacker's own breach probability for each record


def audit_names() -> tuple[str, ...]:
    """Attacks first, because linkage builds on reconstructions; then what recipients can do."""
    utility = tuple(name for name, metric in METRICS.items() if metric.goal == "release")
    return (*ATTACKS, *utility)


class Auditor:
    def __init__(self, truth: Truth, draws: tuple[Draw, ...], policy: Policy, seed: bytes) -> None:
        if not draws or len(truth.X) == 0:
            raise NotApplicable("There is nothing to audit.")
        self.truth, self.draws, self.policy, self.seed = truth, draws, policy, seed
        gated = sum(1 for key in policy.limits if not key.startswith("amplification."))
        self.level = 1.0 - (1.0 - policy.level) / max(1, gated)
        self._played: dict[str, list[Played]] = {}

    def rng(self, *name: object) -> np.random.Generator:
        text = "/".join(map(str, name)).encode()
        digest = hashlib.blake2b(text, key=self.seed[:64], digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))

    def run(self, name: str) -> tuple[Score, ...]:
        """All scores of one attack or utility metric; NotApplicable when it has nothing to do."""
        if not self.truth.schema.numeric:
            raise NotApplicable(f"{name} works on numbers, and no numeric feature is released.")
        if name in ATTACKS:
            return self._run_attack(ATTACKS[name])
        metric = METRICS[name]
        if metric.goal != "release":
            raise NotApplicable(f"{name} is measured by attacks, not on its own.")
        return (self._score_release(metric),)

    @cached_property
    def _people(self) -> tuple[Ints, Ints, Ints]:
        """Records that the attacker knows, the sample it holds, and everybody else."""
        n, attacker = len(self.truth.X), self.policy.attacker
        order = self.rng("people").permutation(n)
        k = min(attacker.known_records, n - 2)
        p = min(round(attacker.sample_share * n), n - k - 2)
        return order[:k], order[k : k + p], np.sort(order[k + p :])

    @cached_property
    def _targets(self) -> Ints:
        """The people that a linker looks for."""
        return self.rng("targets").permutation(self._people[2])[:MOST_TARGETS]

    @cached_property
    def _isolated(self) -> Ints:
        return isolated_tenth(self.truth.X, self.rng("isolated"))

    def play(self, attack: Attack) -> list[Played]:
        if attack.name not in self._played:
            played = [self._play(attack, number, draw) for number, draw in enumerate(self.draws)]
            if any(set(one.candidates) != set(played[0].candidates) for one in played):
                # A candidate that only some draws have would be left out of the score.
                raise Defect(f"The attack {attack.name} offers other candidates on another draw.")
            self._played[attack.name] = played
        return self._played[attack.name]

    def _play(self, attack: Attack, number: int, draw: Draw) -> Played:
        n = len(self.truth.X)
        shuffle = self.rng("shuffle", number).permutation(n)  # released row r is record shuffle[r]
        place = np.argsort(shuffle)
        known, sample, _ = self._people
        picked = self._targets
        view = AttackerView(
            Y=frozen(draw.Y[shuffle]),
            label=frozen(self.truth.label[shuffle]),
            public=frozen_public(draw.public),
            schema=self.truth.schema,
            epsilon=self.policy.attacker.epsilon,
            known=Known(frozen(self.truth.X[known]), frozen(place[known])) if len(known) else None,
            sample=frozen(self.truth.X[sample]) if len(sample) > 1 else None,
            targets=frozen(self.truth.X[picked]),
            reconstructions=self._reconstructions(number, shuffle) if attack.goal == "link" else {},
        )
        estimate = attack.attack(view, self.rng(attack.name, number))
        if attack.goal == "link":
            return Played(estimate.candidates, place[picked], {})
        aligned = {name: X_hat[place] for name, X_hat in estimate.candidates.items()}
        claims = {name: claim[place] for name, claim in estimate.claims.items()}
        return Played(aligned, place[picked], claims)

    def _reconstructions(self, number: int, shuffle: Ints) -> dict[str, Floats]:
        found = {}
        for attack in ATTACKS.values():
            if attack.goal != "reconstruct":
                continue
            try:
                played = self.play(attack)[number]
            except NotApplicable:
                continue
            for name, X_hat in played.candidates.items():
                found[f"{attack.name}/{name}"] = frozen(X_hat[shuffle])
        return found

    def _run_attack(self, attack: Attack) -> tuple[Score, ...]:
        played = self.play(attack)
        if attack.goal == "link":
            return tuple(
                self._score_links(attack, metric, played)
                for metric in METRICS.values()
                if metric.goal == "link"
            )
        return tuple(
            self._score_reconstruction(attack, metric, played)
            for metric in METRICS.values()
            if metric.goal == "reconstruct"
        )

    def _score_reconstruction(
        self, attack: Attack, metric: ReconstructMetric, played: list[Played]
    ) -> Score:
        X, schema, epsilon = self.truth.X, self.truth.schema, self.policy.attacker.epsilon
        others = self._people[2]
        spread = np.ptp(X, axis=0)

        def measure(X_hat: Floats, rows: Ints) -> float:
            return metric.measure(X[rows], X_hat[rows], schema, epsilon, spread)

        def over_draws(name: str, rows: Ints) -> list[float]:
            return [measure(one.candidates[name], rows) for one in played]

        names = list(played[0].candidates)
        means = {name: float(np.mean(over_draws(name, others))) for name in names}
        name = pick_worst(means, metric.better)
        guess = column_mean_guess(X)
        isolated = np.intersect1d(self._isolated, others)
        figures = Figures(
            values=over_draws(name, others),
            n=len(others),
            baseline=measure(guess, others),
            value_on=lambda rows: float(np.mean(over_draws(name, others[rows]))),
            worst_decile=float(np.mean(over_draws(name, isolated))) if len(isolated) else None,
            candidate=name,
            expected=claimed(played, name, others) if metric.name == "breach_rate" else None,
        )
        return self._scored(metric, f"{attack.name}.{metric.name}", figures, attack.story)

    def _score_links(self, attack: Attack, metric: LinkMetric, played: list[Played]) -> Score:
        def over_draws(name: str) -> list[float]:
            return [metric.measure(one.candidates[name], one.link_truth) for one in played]

        # Measured for all, so that a broken candidate is found even beside a worse one.
        means = {name: float(np.mean(over_draws(name))) for name in played[0].candidates}
        name = pick_worst(means, metric.better)
        hits = np.mean([one.candidates[name] == one.link_truth for one in played], axis=0)  # (t,)
        isolated = np.isin(self._targets, self._isolated)
        figures = Figures(
            values=over_draws(name),
            n=len(self._targets),
            baseline=metric.baseline(len(self.truth.X)),
            value_on=lambda rows: float(hits[rows].mean()),
            worst_decile=float(hits[isolated].mean()) if isolated.any() else None,
            candidate=name,
        )
        return self._scored(metric, f"{attack.name}.{metric.name}", figures, attack.story)

    def _score_release(self, metric: ReleaseMetric) -> Score:
        X, label = self.truth.X, self.truth.label
        seed = ("utility", metric.name)

        def on(rows: Ints) -> float:
            return float(
                np.mean(
                    [
                        metric.measure(X[rows], label[rows], d.Y[rows], d.public, self.rng(*seed))
                        for d in self.draws
                    ]
                )
            )

        values = [metric.measure(X, label, d.Y, d.public, self.rng(*seed)) for d in self.draws]
        figures = Figures(
            values=values,
            n=len(X),
            baseline=metric.baseline(label),
            value_on=on,
            original=metric.original(X, label, self.rng(*seed)),
        )
        return self._scored(metric, metric.name, figures)

    def _scored(self, metric: Metric, name: str, figures: Figures, story: str = "") -> Score:
        return scored(
            metric,
            name,
            figures,
            level=self.level,
            rng=self.rng("jackknife", name),
            story=story.format(k=len(self._people[0])),
            epsilon=self.policy.attacker.epsilon,
        )


def claimed(played: list[Played], name: str, rows: Ints) -> float | None:
    """The breach rate that the attacker can compute without knowing anybody's record."""
    if any(name not in one.claims for one in played):
        return None
    return float(np.mean([one.claims[name][rows].mean() for one in played]))


def frozen_public(public: Public) -> Public:
    arrays = {f.name: getattr(public, f.name) for f in fields(public)}
    copies = {name: frozen(a) for name, a in arrays.items() if isinstance(a, np.ndarray)}
    return replace(public, **copies)


def frozen(array: Any) -> Any:
    """A read-only copy: an attack that writes to its view fails loudly."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
