"""One attack on one draw: who takes part, what the attacker sees, and what the attack found.

The original table and the alignment stay here; an attack gets neither. Its view is shuffled by a
private permutation, because assignment solvers and argmin favour the identity on ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw, freeze
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import (
    AttackerView,
    Batches,
    EarlierRows,
    Estimate,
    Goal,
    KnownRows,
    MappedRows,
    RelatedColumns,
    SplitFiles,
)
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.policy import Attacker, Effort
from ppdm_core.model.reasons import Reason
from ppdm_core.model.release import PART, PublicParameters

MAX_TARGETS = 2_000  # persons looked for; the released table they are looked for in is never cut
MIN_TARGETS = 200  # if none of so many is found, at most 1.5 % are
MAX_SEARCHED_PAIRS = (
    2e9  # of a person and a row, for one cost and draw: fewer persons on large tables
)
MAX_SCORED_RECORDS = 20_000  # records whose reconstruction is compared with the original
RELATED_CORRELATION = 0.9  # of a column with the related one that another party holds
HIDDEN_LABEL = -2  # code that no row has
MAX_HALF_TARGETS = 500  # targets inside a half, and as many outside; other persons in each half


@dataclass(frozen=True, eq=False)
class Participants:
    """The roles of the records in a trial; numbers are records of the original table."""

    known: Ints  # records that the attacker knows, with their rows
    sample: Ints  # records of the attacker's sample of the population
    targets: Ints  # records that the attacker looks for, in random order
    is_member: NDArray[np.bool_]  # (t,) whether the target is in the release
    reference: Ints  # records outside the release, in a trial on a half
    unknown: Ints  # scored records of the release of which the attacker knows nothing
    partial: Ints  # columns of a target that a partly informed attacker knows


def limit_targets(rows: int) -> int:
    """Return how many persons are looked for among so many released rows."""
    return int(np.clip(MAX_SEARCHED_PAIRS // max(rows, 1), MIN_TARGETS, MAX_TARGETS))


def choose_participants(
    n: int, d: int, attacker: Attacker, rng: np.random.Generator, total: int | None = None
) -> Participants:
    """Choose the roles where every record is in the release.

    ``total``: the number of records of the table, of which the ``n`` audited ones are a part. The
    sample is a share of it, but leaves records to be scored.
    """
    order = rng.permutation(n)
    k = max(0, min(attacker.known_records, n - 2))
    p = max(0, min(round(attacker.sample_share * n), n - k - 2))
    if total is not None:
        p = max(p, min(round(attacker.sample_share * total), n - k - MAX_SCORED_RECORDS))
    unknown = np.sort(order[k + p :][:MAX_SCORED_RECORDS])
    targets = rng.permutation(unknown)[: limit_targets(total or n)]
    return Participants(
        known=order[:k],
        sample=order[k : k + p],
        targets=targets,
        is_member=np.ones(len(targets), dtype=np.bool_),
        reference=order[:0],
        unknown=unknown,
        partial=choose_half_of_columns(d, rng),
    )


def choose_half_participants(
    n: int,
    d: int,
    members: Ints,
    attacker: Attacker,
    rng: np.random.Generator,
    total: int | None = None,
) -> Participants:
    """Choose the roles where only ``members`` are in the release.

    There are as many targets inside as outside. A third of the other records is the reference.
    ``total``: the number of records of the table, of which ``n`` are audited.
    """
    inside = rng.permutation(members)
    outside = rng.permutation(np.setdiff1d(np.arange(n), members))
    k = max(0, min(attacker.known_records, len(inside) - 2))
    reference, controls = np.split(outside, [len(outside) // 3])
    most = min(MAX_HALF_TARGETS, limit_targets((total or n) // 2) // 2)
    t = min(len(inside) - k, len(controls), most)
    targets = np.concatenate([inside[k : k + t], controls[:t]])
    shuffle = rng.permutation(len(targets))
    return Participants(
        known=inside[:k],
        sample=reference[: round(attacker.sample_share * (total or n))],
        targets=targets[shuffle],
        is_member=np.isin(targets[shuffle], members),
        reference=reference,
        unknown=np.sort(inside[k:][:MAX_SCORED_RECORDS]),
        partial=choose_half_of_columns(d, rng),
    )


def choose_half_of_columns(d: int, rng: np.random.Generator) -> Ints:
    """Return the ascending numbers of a random half of the columns."""
    return np.sort(rng.permutation(d)[: (d + 1) // 2])


def draw_related_columns(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a table whose columns correlate with those of ``X`` one by one, (n, d)."""
    scale = X.std(axis=0) * np.sqrt(RELATED_CORRELATION**-2 - 1)
    return np.asarray(X + scale * rng.standard_normal(X.shape))


@dataclass(frozen=True, eq=False)
class AttackTrial:
    """One draw with its participants, and the order in which the attacker sees rows and files."""

    truth: OriginalTable
    draw: ReleaseDraw
    participants: Participants
    shuffle: Ints  # row r of the view is row shuffle[r] of the draw
    right_order: Ints  # line j of the right file is target right_order[j]
    earlier: EarlierReleases | None = None
    related: Floats | None = None  # (n, q) columns of every record that another party holds

    @classmethod
    def create(
        cls,
        truth: OriginalTable,
        draw: ReleaseDraw,
        participants: Participants,
        rng: np.random.Generator,
    ) -> AttackTrial:
        """Shuffle the rows and the right file with ``rng``; draw what another party holds."""
        shuffle = rng.permutation(len(draw.Y) + draw.partner_count)
        right_order = rng.permutation(len(participants.targets))
        is_part = PART in draw.public.facts
        related = draw_related_columns(truth.X, rng) if is_part else None
        return cls(truth, draw, participants, shuffle, right_order, related=related)

    def build_view(self, epsilon: float, effort: Effort) -> AttackerView:
        """Return what the attacker sees, without reconstructions and earlier releases."""
        truth, draw, roles = self.truth, self.draw, self.participants
        X, position = truth.X, self.find_positions()
        known = None
        if is_one_to_one(draw) and len(roles.known) > 0:
            known = KnownRows(freeze(X[roles.known]), freeze(position[roles.known]))
        return AttackerView(
            Y=freeze(draw.list_all_rows()[self.shuffle]),
            label=freeze(draw.add_partner_labels(draw.find_labels(truth))[self.shuffle]),
            public=freeze_public(draw.public),
            schema=truth.schema,
            epsilon=epsilon,
            C=None if draw.C is None else freeze(draw.list_all_codes()[self.shuffle]),
            effort=effort,
            offset=None if truth.offset is None else freeze(truth.offset),
            unit=None if truth.unit is None else freeze(truth.unit),
            known=known,
            records=freeze(X[roles.known]) if len(roles.known) else None,
            sample=freeze(X[roles.sample]) if len(roles.sample) > 1 else None,
            targets=truth.select(roles.targets),
            partial_columns=freeze(roles.partial) if X.shape[1] > 1 else None,
            split_files=self.split_columns(),
            reference=truth.select(roles.reference) if len(roles.reference) else None,
            leaked_map=None if draw.leaked_map is None else freeze_public(draw.leaked_map),
            partner_rows=self.find_partner_rows(),
            related=self.find_related_columns(position),
            site_moments=None if draw.partners is None else draw.partners.moments,
            further=draw.others,
        )

    def find_positions(self) -> Ints:
        """Return the row of the view of each record, -1 for a record without one."""
        records = self.draw.list_all_records(self.truth)[self.shuffle]
        position = np.full(len(self.truth.X) + 1, -1)
        position[records] = np.arange(len(records))
        return position[:-1]

    def find_related_columns(self, position: Ints) -> RelatedColumns | None:
        """Return what another party holds of these persons; ``position`` is the row of each."""
        if self.related is None:
            return None
        known, targets = self.participants.known, self.participants.targets
        return RelatedColumns(
            freeze(self.related[known]), freeze(self.related[targets]), freeze(position[targets])
        )

    def find_partner_rows(self) -> Ints | None:
        """Return the rows of the view that belong to other sites, None if there are none."""
        if self.draw.partners is None:
            return None
        found: Ints = freeze(np.flatnonzero(self.shuffle >= len(self.draw.Y)))
        return found

    def hide_control_labels(self, view: AttackerView) -> AttackerView:
        """Return the view without the labels of the targets that are not in the release."""
        targets, is_member = view.targets, self.participants.is_member
        assert targets is not None
        label = freeze(np.where(is_member, targets.label, HIDDEN_LABEL))
        return replace(view, targets=replace(targets, label=label))

    def build_half_known_views(self, view: AttackerView) -> Iterator[tuple[Ints, AttackerView]]:
        """Yield the positions of half of the targets, and a view in which the others are known."""
        targets = self.participants.targets
        position = self.find_positions()
        half = np.arange(len(targets)) % 2  # targets are in random order
        for number in (0, 1):
            mine = np.flatnonzero(half == number)
            known = np.concatenate([self.participants.known, targets[half != number]])
            X = freeze(self.truth.X[known])
            yield (
                mine,
                replace(
                    view,
                    known=KnownRows(X, freeze(position[known])),
                    records=X,
                    targets=self.truth.select(targets[mine]),
                    split_files=None,
                ),
            )

    def add_earlier_releases(self, view: AttackerView) -> AttackerView:
        """Return the view of a subscriber who stored all releases and matches rows by record."""
        earlier = self.earlier
        if earlier is None:
            return view
        if earlier.unmatched_releases:
            raise NotApplicable(
                f"The rows of {earlier.unmatched_releases} earlier releases cannot be matched to "
                "records.",
                reason=Reason.SINGLE_RELEASE,
            )
        versions = tuple(
            EarlierRows(
                freeze(self.inverse_shuffle[each.rows]), freeze(each.Y), freeze_public(each.public)
            )
            for each in earlier.versions
        )
        return replace(
            view,
            Y=freeze(earlier.merge_current(self.draw.Y)[self.shuffle]),
            earlier_releases=versions,
            arrival_batches=self._batch(earlier.arrival_batch[self.shuffle]),
            departure_batches=self._departures(earlier.removed_count),
        )

    def _departures(self, removed_count: int) -> Batches | None:
        """Return random batches as large as the removed one; the order of the view is random."""
        if not removed_count:
            return None
        m = len(self.shuffle)
        last = max(m // removed_count, 1) - 1
        return self._batch(np.minimum(np.arange(m) // removed_count, last))

    def _batch(self, rows: Ints) -> Batches:
        return Batches(freeze(rows), freeze(rows[self.inverse_shuffle[self.participants.targets]]))

    @cached_property
    def inverse_shuffle(self) -> Ints:
        """Row r of the draw is row inverse_shuffle[r] of the view."""
        return np.argsort(self.shuffle)

    def split_columns(self) -> SplitFiles | None:
        """Return the targets as two files with different columns, None for a single column."""
        left, X = self.participants.partial, self.truth.X[self.participants.targets]
        right = np.setdiff1d(np.arange(X.shape[1]), left)
        if not len(right):
            return None
        return SplitFiles(
            freeze(left),
            freeze(X[:, left]),
            freeze(right),
            freeze(X[self.right_order][:, right]),
        )

    def align(self, goal: Goal, estimate: NDArray[Any]) -> NDArray[Any]:
        """Return an estimate in the order of the draw, with records in place of positions."""
        if goal == "source":
            estimate = find_records(estimate, self.participants.targets)
        elif goal == "link":
            records = self.draw.list_all_records(self.truth)[self.shuffle]
            if self.draw.others is not None:  # no target has a row there
                estimate = np.minimum(estimate, len(records))
                records = np.append(records, len(self.truth.X))
            estimate = find_records(estimate, records)
        elif goal == "pair":
            estimate = find_records(estimate, self.participants.targets[self.right_order])
        by_row = goal in ("reconstruct", "norms", "source")
        return estimate[self.inverse_shuffle][: len(self.draw.Y)] if by_row else estimate

    def find_scored_rows(self) -> Ints | None:
        """Return the rows of the draw that reconstructions are made for; None: all.

        Of a large table, these are the rows of scored records.
        """
        records = self.draw.records
        if len(records) <= MAX_SCORED_RECORDS or bool((records < 0).any()):
            return None
        return np.flatnonzero(np.isin(records, self.participants.unknown))

    def make_outcome(self, goal: Goal, estimate: Estimate) -> TrialOutcome:
        """Return what the attack found, in the order of the draw."""
        rows = self.find_scored_rows() if goal == "reconstruct" else None

        def align_all(found: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
            if rows is None:
                return {name: self.align(goal, each) for name, each in found.items()}
            places = self.inverse_shuffle[rows]
            if isinstance(found, MappedRows):
                return dict(found.select(places))
            return {name: each[places] for name, each in found.items()}

        places = self.inverse_shuffle[: len(self.draw.Y)]
        return TrialOutcome(
            draw=self.draw,
            participants=self.participants,
            candidates=align_all(estimate.candidates),
            scenarios={name: align_all(found) for name, found in estimate.scenarios.items()},
            claims={
                name: claim[places if rows is None else places[rows]]
                for name, claim in estimate.claims.items()
            },
            notes=dict(estimate.notes),
            rows=rows,
            estimate=estimate if goal == "reconstruct" else None,
        )


@dataclass(frozen=True, eq=False)
class TrialOutcome:
    """What one attack found on one draw, in the order of the draw."""

    draw: ReleaseDraw
    participants: Participants
    candidates: Mapping[str, NDArray[Any]]
    scenarios: Mapping[str, Mapping[str, NDArray[Any]]]
    claims: Mapping[str, Floats]  # the attacker's own probabilities, by row
    notes: Mapping[str, float]
    knows_partners: bool = False  # the attacker can tell which rows belong to other sites
    rows: Ints | None = None  # of the draw, that reconstructions are made for; None: all
    estimate: Estimate | None = None  # a reconstruction as the attack returned it

    @cached_property
    def records(self) -> Ints:
        """The record behind each row that an estimate is about."""
        return self.draw.records if self.rows is None else self.draw.records[self.rows]

    def keep_candidate(self, name: str) -> TrialOutcome:
        """Return one candidate of a reconstruction, in the order of the view, and nothing else."""
        assert self.estimate is not None
        found = self.estimate.candidates
        kept = found.keep(name) if isinstance(found, MappedRows) else {name: found[name]}
        return replace(
            self, candidates={}, scenarios={}, claims={}, notes={}, estimate=Estimate(kept)
        )

    def estimates(self, scenario: str) -> Mapping[str, NDArray[Any]]:
        """Return the candidates of a scenario, if there are any; "" is the policy's attacker."""
        return self.scenarios.get(scenario, {}) if scenario else self.candidates


def is_one_to_one(draw: ReleaseDraw) -> bool:
    """Return whether every record that was put in has exactly one row."""
    if draw.source is None:
        return True
    return draw.members is not None and np.array_equal(np.sort(draw.source), np.sort(draw.members))


def find_records(positions: Ints, records: Ints) -> Ints:
    """Return the records at the positions that an attack names; -1 (no estimate) stays -1."""
    if not np.issubdtype(positions.dtype, np.integer):
        raise Defect("An attack returned positions that are not integers.")
    if bool(np.any((positions < -1) | (positions >= len(records)))):
        raise Defect("An attack returned positions that do not exist.")
    return np.append(records, -1)[positions]


def freeze_public(public: PublicParameters) -> PublicParameters:
    """Return public parameters whose arrays are read-only copies."""
    arrays = {f.name: getattr(public, f.name) for f in fields(public)}
    copies = {name: freeze(a) for name, a in arrays.items() if isinstance(a, np.ndarray)}
    return replace(public, **copies)
