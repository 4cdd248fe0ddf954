"""One attack on one release: who is who, what the attacker is shown, what came of it.

The truth and the alignment stay here; an attack gets neither. Its view is shuffled by a private
permutation, because assignment solvers and argmin favour the identity on ties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import (
    AttackerView,
    Batches,
    Estimate,
    Goal,
    Known,
    People,
    TwoFiles,
    Versions,
)
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.policy import Attacker, Effort
from ppdm_core.model.release import Public
from ppdm_core.model.schema import Schema

MOST_TARGETS = 2_000  # people looked for; the released table they are looked for in is never cut
MOST_SCORED = 20_000  # records whose reconstruction is compared with the truth
MOST_OF_A_HALF = 500  # of those in a split, and as many outside it; other people in each split


@dataclass(frozen=True, eq=False)
class Truth:
    X: Floats  # (n, d) scaled
    label: Codes  # (n,)
    schema: Schema
    C: Codes | None = None  # (n, c) codes of the categorical columns
    groups: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)  # (n,) in words: whose

    @cached_property
    def codes(self) -> Codes:
        return np.zeros((len(self.X), 0), dtype=np.int32) if self.C is None else self.C

    @cached_property
    def table(self) -> Floats:
        """All columns, the codes behind the numbers and the label last."""
        return np.column_stack([self.X, self.codes, self.label]).astype(np.float64)

    @cached_property
    def spread(self) -> Floats:
        """(d,) range of each numeric column."""
        return np.asarray(np.ptp(self.X, axis=0))

    def people(self, records: Ints) -> People:
        return People(
            frozen(self.X[records]), frozen(self.codes[records]), frozen(self.label[records])
        )


@dataclass(frozen=True, eq=False)
class Draw:
    """One shadow release of the records, or of those ``members`` only."""

    Y: Floats  # (m, s)
    public: Public
    source: Ints | None = None  # (m,) record that each row was made from; None: row i of record i
    C: Codes | None = None  # (m, c) answers, in the order of public.responses
    members: Ints | None = None  # records that were put in; None: all
    leak: Public | None = None  # the same as ``public`` for somebody with the key

    @property
    def records(self) -> Ints:
        return np.arange(len(self.Y)) if self.source is None else self.source


@dataclass(frozen=True, eq=False)
class Past:
    """What was published before of the records that are released now; rows are records."""

    versions: tuple[Versions, ...]
    again: Floats  # (n, s) rows that leave as they did before, NaN for those drawn anew
    batch: Ints  # (n,) the same for rows that the same releases had, as they are now
    gone: int = 0  # rows of the last release that are not in the one now
    lost: int = 0  # releases of which nobody can say whose rows they had

    def now(self, Y: Floats) -> Floats:
        """A shadow draw as subscribers would see it: only what is drawn anew is new to them."""
        return np.where(np.isfinite(self.again), self.again, Y)


@dataclass(frozen=True, eq=False)
class Cast:
    """Who is who; numbers are records of the truth."""

    known: Ints  # whose rows are known
    sample: Ints
    targets: Ints  # in a random order
    is_member: NDArray[np.bool_]  # (t,)
    reference: Ints  # people outside the release, in a split
    unknown: Ints  # those in the release of whom nothing is known, and who are scored
    partial: Ints  # columns known of somebody in part


def cast_all(n: int, d: int, attacker: Attacker, rng: np.random.Generator) -> Cast:
    """Everybody is in the release."""
    order = rng.permutation(n)
    k = max(0, min(attacker.known_records, n - 2))
    p = max(0, min(round(attacker.sample_share * n), n - k - 2))
    unknown = np.sort(order[k + p :][:MOST_SCORED])
    targets = rng.permutation(unknown)[:MOST_TARGETS]
    return Cast(
        known=order[:k],
        sample=order[k : k + p],
        targets=targets,
        is_member=np.ones(len(targets), dtype=np.bool_),
        reference=order[:0],
        unknown=unknown,
        partial=half_of(d, rng),
    )


def cast_split(n: int, d: int, members: Ints, attacker: Attacker, rng: np.random.Generator) -> Cast:
    """As many targets in the release as outside it; a third of the others are the reference."""
    inside = rng.permutation(members)
    outside = rng.permutation(np.setdiff1d(np.arange(n), members))
    k = max(0, min(attacker.known_records, len(inside) - 2))
    reference, controls = np.split(outside, [len(outside) // 3])
    t = min(len(inside) - k, len(controls), MOST_OF_A_HALF)
    targets = np.concatenate([inside[k : k + t], controls[:t]])
    shuffle = rng.permutation(len(targets))
    return Cast(
        known=inside[:k],
        sample=reference[: round(attacker.sample_share * n)],
        targets=targets[shuffle],
        is_member=np.isin(targets[shuffle], members),
        reference=reference,
        unknown=np.sort(inside[k:][:MOST_SCORED]),
        partial=half_of(d, rng),
    )


def half_of(d: int, rng: np.random.Generator) -> Ints:
    return np.sort(rng.permutation(d)[: (d + 1) // 2])


@dataclass(frozen=True, eq=False)
class Stage:
    """One release with its cast, and the order in which the attacker sees rows and files."""

    truth: Truth
    draw: Draw
    cast: Cast
    shuffle: Ints  # row r of the view is row shuffle[r] of the draw
    right: Ints  # line j of the right file is target right[j]
    past: Past | None = None

    @classmethod
    def set(cls, truth: Truth, draw: Draw, cast: Cast, rng: np.random.Generator) -> Stage:
        return cls(
            truth, draw, cast, rng.permutation(len(draw.Y)), rng.permutation(len(cast.targets))
        )

    def view(self, epsilon: float, effort: Effort) -> AttackerView:
        """Everything but reconstructions."""
        truth, draw, cast = self.truth, self.draw, self.cast
        X, behind = truth.X, draw.records[self.shuffle]
        place = np.full(len(X), -1)
        place[behind] = np.arange(len(behind))
        is_pairing = is_one_to_one(draw) and len(cast.known) > 0
        return AttackerView(
            Y=frozen(draw.Y[self.shuffle]),
            label=frozen(truth.label[behind]),
            public=frozen_public(draw.public),
            schema=truth.schema,
            epsilon=epsilon,
            C=None if draw.C is None else frozen(draw.C[self.shuffle]),
            effort=effort,
            known=Known(frozen(X[cast.known]), frozen(place[cast.known])) if is_pairing else None,
            records=frozen(X[cast.known]) if len(cast.known) else None,
            sample=frozen(X[cast.sample]) if len(cast.sample) > 1 else None,
            targets=truth.people(cast.targets),
            partial=frozen(cast.partial) if X.shape[1] > 1 else None,
            files=self.files(),
            reference=truth.people(cast.reference) if len(cast.reference) else None,
            leak=None if draw.leak is None else frozen_public(draw.leak),
        )

    def with_past(self, view: AttackerView) -> AttackerView:
        """For somebody who kept the earlier releases and can tell whose row is whose."""
        if self.past is None:
            return view
        if self.past.lost:
            raise NotApplicable(
                f"{self.past.lost} earlier releases had rows that cannot be put together by record."
            )
        earlier = tuple(
            Versions(frozen(self.back[each.rows]), frozen(each.Y), frozen_public(each.public))
            for each in self.past.versions
        )
        Y = self.past.now(self.draw.Y)[self.shuffle]
        return replace(view, Y=frozen(Y), earlier=earlier, came=self.came(), left=self.left())

    def came(self) -> Batches:
        assert self.past is not None
        return self._batches(self.past.batch[self.shuffle])

    def left(self) -> Batches | None:
        """Random batches as large as the one that is gone; the order of the view is random."""
        assert self.past is not None
        m, size = len(self.shuffle), self.past.gone
        if not size:
            return None
        return self._batches(np.minimum(np.arange(m) // size, max(m // size, 1) - 1))

    def _batches(self, rows: Ints) -> Batches:
        return Batches(frozen(rows), frozen(rows[self.back[self.cast.targets]]))

    @cached_property
    def back(self) -> Ints:
        """Row r of the draw is row back[r] of the view."""
        return np.argsort(self.shuffle)

    def files(self) -> TwoFiles | None:
        left, X = self.cast.partial, self.truth.X[self.cast.targets]
        right = np.setdiff1d(np.arange(X.shape[1]), left)
        if not len(right):
            return None
        return TwoFiles(
            frozen(left),
            frozen(X[:, left]),
            frozen(right),
            frozen(X[self.right][:, right]),
        )

    def aligned(self, goal: Goal, answer: NDArray[Any]) -> NDArray[Any]:
        """An answer in the order of the draw; records in place of positions."""
        if goal == "source":
            answer = records_at(answer, self.cast.targets)
        elif goal == "link":
            answer = records_at(answer, self.draw.records[self.shuffle])
        elif goal == "pair":
            answer = records_at(answer, self.cast.targets[self.right])
        return answer[self.back] if goal in ("reconstruct", "norms", "source") else answer

    def played(self, goal: Goal, estimate: Estimate) -> Played:
        def each(answers: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
            return {name: self.aligned(goal, answer) for name, answer in answers.items()}

        return Played(
            draw=self.draw,
            cast=self.cast,
            candidates=each(estimate.candidates),
            scenarios={name: each(answers) for name, answers in estimate.scenarios.items()},
            claims={name: claim[self.back] for name, claim in estimate.claims.items()},
            notes=dict(estimate.notes),
        )


@dataclass(frozen=True, eq=False)
class Played:
    """What one attack got on one draw, put back into the order of the draw."""

    draw: Draw
    cast: Cast
    candidates: Mapping[str, NDArray[Any]]
    scenarios: Mapping[str, Mapping[str, NDArray[Any]]]
    claims: Mapping[str, Floats]  # the attacker's own probabilities, by row
    notes: Mapping[str, float]

    def answers(self, scenario: str) -> Mapping[str, NDArray[Any]]:
        return self.scenarios[scenario] if scenario else self.candidates


def is_one_to_one(draw: Draw) -> bool:
    """Everybody who is in has one row; else nobody has a row of their own."""
    if draw.source is None:
        return True
    return draw.members is not None and np.array_equal(np.sort(draw.source), np.sort(draw.members))


def records_at(places: Ints, behind: Ints) -> Ints:
    """The records behind the places that an attack points at; -1, nobody, stays -1."""
    if not np.issubdtype(places.dtype, np.integer):
        raise Defect("An attack points at no places.")
    if bool(np.any((places < -1) | (places >= len(behind)))):
        raise Defect("An attack points at places that are not there.")
    return np.append(behind, -1)[places]


def frozen_public(public: Public) -> Public:
    arrays = {f.name: getattr(public, f.name) for f in fields(public)}
    copies = {name: frozen(a) for name, a in arrays.items() if isinstance(a, np.ndarray)}
    return replace(public, **copies)


def frozen(array: Any) -> Any:
    """A read-only copy: an attack that writes to its view fails loudly."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
