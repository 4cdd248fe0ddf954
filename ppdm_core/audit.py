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
from numpy.typing import NDArray

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
    """One shadow release of the records."""

    Y: Floats  # (m, s)
    public: Public
    source: Ints | None = None  # (m,) record that each row was made from; None: row i of record i

    @property
    def records(self) -> Ints:
        return np.arange(len(self.Y)) if self.source is None else self.source

    def only(self, records: Ints) -> Draw:
        """What would be there without the other records."""
        if self.source is None:
            return replace(self, Y=self.Y[records])
        place = np.full(max(records.max(), self.source.max()) + 1, -1)
        place[records] = np.arange(len(records))
        rows = np.flatnonzero(place[self.source] >= 0)
        return replace(self, Y=self.Y[rows], source=place[self.source[rows]])


@dataclass(frozen=True, eq=False)
class Truth:
    X: Floats  # (n, d) scaled
    label: Codes  # (n,)
    schema: Schema


@dataclass(frozen=True, eq=False)
class Played:
    """One attack on one draw, put back into the order of the draw.

    A reconstruction has a line for each released row; a link is the record behind the row that
    was taken for a target, -1 for none.
    """

    candidates: Mapping[str, Any]
    claims: Mapping[str, Floats]  # the attacker's own breach probability for each row
    draw: Draw

    def rows_of(self, records: Ints) -> Ints:
        """The released rows that were made from these records."""
        if self.draw.source is None:
            return records
        return np.flatnonzero(np.isin(self.draw.source, records))


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
        shuffle = self.rng("shuffle", number).permutation(len(draw.Y))  # row r of the view is of
        place, behind = np.argsort(shuffle), draw.records[shuffle]  # record behind[r]
        known, sample, _ = self._people
        is_pairing = draw.source is None and len(known) > 0  # else nobody has a row of their own
        view = AttackerView(
            Y=frozen(draw.Y[shuffle]),
            label=frozen(self.truth.label[behind]),
            public=frozen_public(draw.public),
            schema=self.truth.schema,
            epsilon=self.policy.attacker.epsilon,
            known=Known(frozen(self.truth.X[known]), frozen(place[known])) if is_pairing else None,
            sample=frozen(self.truth.X[sample]) if len(sample) > 1 else None,
            targets=frozen(self.truth.X[self._targets]),
            reconstructions=self._reconstructions(number, shuffle) if attack.goal == "link" else {},
        )
        estimate = attack.attack(view, self.rng(attack.name, number))
        if attack.goal == "link":
            found = {key: records_at(row, behind) for key, row in estimate.candidates.items()}
            return Played(found, {}, draw)
        aligned = {name: X_hat[place] for name, X_hat in estimate.candidates.items()}
        claims = {name: claim[place] for name, claim in estimate.claims.items()}
        return Played(aligned, claims, draw)

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

        def over_draws(name: str, records: Ints) -> list[float]:
            found = []
            for one in played:
                rows = one.rows_of(records)
                if len(rows):  # these records may all have been drawn never
                    truth, X_hat = X[one.draw.records[rows]], one.candidates[name][rows]
                    found.append(metric.measure(truth, X_hat, schema, epsilon, spread))
            return found

        names = list(played[0].candidates)
        means = {name: float(np.mean(over_draws(name, others))) for name in names}
        name = pick_worst(means, metric.better)
        guess = column_mean_guess(X)[others]
        isolated = over_draws(name, np.intersect1d(self._isolated, others))
        figures = Figures(
            values=over_draws(name, others),
            n=min(people_behind(one.draw.records[one.rows_of(others)]) for one in played),
            baseline=metric.measure(X[others], guess, schema, epsilon, spread),
            value_on=lambda rows: float(np.mean(over_draws(name, others[rows]))),
            worst_decile=float(np.mean(isolated)) if isolated else None,
            candidate=name,
            expected=claimed(played, name, others) if metric.name == "breach_rate" else None,
        )
        return self._scored(metric, f"{attack.name}.{metric.name}", figures, attack.story)

    def _score_links(self, attack: Attack, metric: LinkMetric, played: list[Played]) -> Score:
        # Whoever was never drawn has no row that could be found.
        present = [np.isin(self._targets, one.draw.records) for one in played]  # (t,) each

        def over_draws(name: str, wanted: NDArray[np.bool_] | bool = True) -> list[float]:
            return [
                metric.measure(one.candidates[name][here], self._targets[here])
                for one, here in zip(played, (each & wanted for each in present), strict=True)
                if here.any()
            ]

        # Measured for all, so that a broken candidate is found even beside a worse one.
        means = {name: float(np.mean(over_draws(name))) for name in played[0].candidates}
        name = pick_worst(means, metric.better)
        isolated = over_draws(name, np.isin(self._targets, self._isolated))
        chosen = np.arange(len(self._targets))
        figures = Figures(
            values=over_draws(name),
            n=min(int(each.sum()) for each in present),
            baseline=metric.baseline(len(np.unique(played[0].draw.records))),
            value_on=lambda rows: float(np.mean(over_draws(name, np.isin(chosen, rows)))),
            worst_decile=float(np.mean(isolated)) if isolated else None,
            candidate=name,
        )
        return self._scored(metric, f"{attack.name}.{metric.name}", figures, attack.story)

    def _score_release(self, metric: ReleaseMetric) -> Score:
        X, label = self.truth.X, self.truth.label
        seed = ("utility", metric.name)

        def over_draws(records: Ints) -> list[float]:
            draws = [draw.only(records) for draw in self.draws]
            return [
                metric.measure(
                    X[records], label[records], one.Y, one.public, self.rng(*seed), one.source
                )
                for one in draws
            ]

        figures = Figures(
            values=over_draws(np.arange(len(X))),
            n=len(X),
            baseline=metric.baseline(label),
            value_on=lambda records: float(np.mean(over_draws(records))),
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


def claimed(played: list[Played], name: str, records: Ints) -> float | None:
    """The breach rate that the attacker can compute without knowing anybody's record."""
    if any(name not in one.claims for one in played):
        return None
    return float(np.mean([one.claims[name][one.rows_of(records)].mean() for one in played]))


def people_behind(records: Ints) -> int:
    """As how many single rows the rows of these records count: copies are no further evidence."""
    _, copies = np.unique(records, return_counts=True)
    return int(copies.sum() ** 2 // (copies**2).sum())


def records_at(rows: Ints, behind: Ints) -> Ints:
    """The records behind the rows that an attack points at; -1, nobody, stays -1."""
    if not np.issubdtype(rows.dtype, np.integer) or bool(
        np.any((rows < -1) | (rows >= len(behind)))
    ):
        raise Defect("An attack points at rows that are not there.")
    return np.append(behind, -1)[rows]


def frozen_public(public: Public) -> Public:
    arrays = {f.name: getattr(public, f.name) for f in fields(public)}
    copies = {name: frozen(a) for name, a in arrays.items() if isinstance(a, np.ndarray)}
    return replace(public, **copies)


def frozen(array: Any) -> Any:
    """A read-only copy: an attack that writes to its view fails loudly."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
