"""The releases that an audit attacks: shadow draws of the candidate, and draws of random halves.

``draw_shadows`` is the only place that draws them, for the pipeline, studies, benchmarks and
tests. ``collect_inputs`` loads the draws into memory for the attacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.audited_part import OtherRows, gather_part, is_in_part
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import EarlierRows, RecordSet, SiteMoments
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy
from ppdm_core.model.release import PublicParameters, Released
from ppdm_core.model.rows import Block, Rows, encode_positions, select_rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Fitted, Sanitizer

MIN_HALF_RECORDS = 10  # on fewer, nothing can be measured on the records outside a half


@dataclass(frozen=True, eq=False)
class OriginalTable:
    """The original records, which only the evaluation sees."""

    X: Floats  # (n, d) scaled
    label: Codes  # (n,)
    schema: Schema
    C: Codes | None = None  # (n, c) codes of the categorical columns
    groups: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)  # name -> (n,) membership
    offset: Floats | None = None  # (d,) original value = offset + unit * scaled value
    unit: Floats | None = None  # (d,)
    total: int | None = None  # number of records of the table, if these are a part of them

    @property
    def record_count(self) -> int:
        """Number of records of the table, of which these may be a part."""
        return len(self.X) if self.total is None else self.total

    @cached_property
    def codes(self) -> Codes:
        return np.zeros((len(self.X), 0), dtype=np.int32) if self.C is None else self.C

    @cached_property
    def table(self) -> Floats:
        """All columns: numbers first, then codes, the label last."""
        return np.column_stack([self.X, self.codes, self.label]).astype(np.float64)

    @cached_property
    def spread(self) -> Floats:
        """(d,) range of each numeric column."""
        return np.asarray(np.ptp(self.X, axis=0))

    def select(self, records: Ints) -> RecordSet:
        """Return read-only copies of some records."""
        return RecordSet(
            freeze(self.X[records]), freeze(self.codes[records]), freeze(self.label[records])
        )


@dataclass(frozen=True, eq=False)
class PartnerRows:
    """Rows of other sites in the same pool, and what these sites know of this one.

    The records behind the rows are not known here.
    """

    Y: Floats  # (f, s)
    label: Codes  # (f,)
    moments: SiteMoments | None = None  # of this site; None: no moments were exchanged


@dataclass(frozen=True, eq=False)
class ReleaseDraw:
    """One draw of the release, of all records or of ``members`` only."""

    Y: Floats  # (m, s)
    public: PublicParameters
    source: Ints | None = None  # (m,) record that each row was made from; None: row i of record i
    C: Codes | None = None  # (m, c) released codes, in the order of public.responses
    members: Ints | None = None  # records that were put in; None: all
    label: Codes | None = None  # (m,) released labels; None: those of the records, unperturbed
    cells: Floats | None = None  # (m, s) a released file as it is, before it was scaled
    leaked_map: PublicParameters | None = (
        None  # the same as ``public`` for an attacker who has the key
    )
    partners: PartnerRows | None = None  # None: all rows are made from the original table
    others: OtherRows | None = None  # of records that are not audited; None: there are none

    @property
    def row_count(self) -> int:
        """Number of released rows of the table, of which those in memory may be a part."""
        return len(self.Y) + (0 if self.others is None else self.others.n)

    @property
    def records(self) -> Ints:
        return np.arange(len(self.Y)) if self.source is None else self.source

    @property
    def partner_count(self) -> int:
        return 0 if self.partners is None else len(self.partners.Y)

    def find_labels(self, truth: OriginalTable) -> Codes:
        """Return the released label of each row, (m,)."""
        return truth.label[self.records] if self.label is None else self.label

    def add_partner_labels(self, label: Codes) -> Codes:
        """Return labels of own rows, followed by those of all rows of partners."""
        return label if self.partners is None else np.append(label, self.partners.label)

    def list_all_rows(self) -> Floats:
        """Return own rows, followed by those of partners, (m + f, s)."""
        return self.Y if self.partners is None else np.concatenate([self.Y, self.partners.Y])

    def list_all_codes(self) -> Codes:
        """Return the released codes of all rows; methods of several sites release none."""
        assert self.C is not None
        none = np.full((self.partner_count, self.C.shape[1]), -1, dtype=np.int32)
        return np.concatenate([self.C, none])

    def list_all_records(self, truth: OriginalTable) -> Ints:
        """Return the record of each row; rows of partners have a number that no record has."""
        return np.append(self.records, np.full(self.partner_count, len(truth.X)))


@dataclass(frozen=True, eq=False)
class EarlierReleases:
    """What was published before of the records that are released now; rows are records."""

    versions: tuple[EarlierRows, ...]
    unchanged_rows: Floats  # (n, s) rows released as before, NaN for redrawn ones
    arrival_batch: Ints  # (n,) equal for rows that the same earlier releases had as they are now
    removed_count: int = 0  # rows of the last release that are not in the current one
    unmatched_releases: int = 0  # releases whose rows cannot be matched to records

    def merge_current(self, Y: Floats) -> Floats:
        """Return a shadow draw as a subscriber sees it: unchanged rows keep their values."""
        return np.where(np.isfinite(self.unchanged_rows), self.unchanged_rows, Y)


@dataclass(frozen=True, eq=False)
class HalfRelease:
    """A random half of the records, and a release of them alone."""

    rows: Rows
    released: Released


@dataclass(frozen=True, eq=False)
class ShadowDraws:
    """Every draw that the attacks on one release need."""

    shadows: tuple[Released, ...]
    halves: tuple[HalfRelease, ...]
    leaked_maps: tuple[tuple[Floats, Floats], ...]  # centre and loadings behind each shadow


def draw_shadows(
    rows: Rows,
    sanitizer: Sanitizer,
    noise: Noise,
    fitted: Fitted,
    policy: Policy,
    *,
    scope: Sequence[str],
    refit_halves: bool,
    has_ids: bool = True,
) -> ShadowDraws:
    """Draw releases of scaled ``rows`` as the candidate is drawn, and of random halves of them.

    Shadow keys follow from the key, the ``scope`` (data, attack settings, code) and a number, so
    that a rerun is judged on the same draws. ``refit_halves``: what the method learned from the
    released records is learned again from each half.
    """
    # Without record ids, key shadow draws by row position so that a rerun uses the same draws.
    keyed = rows if has_ids else rows.map(_key_by_position, rows.schema)
    noises = [shadow_noise(noise, scope, k) for k in range(policy.shadow_draws)]
    shadows = tuple(sanitizer.sanitize(keyed, each, fitted) for each in noises)
    halves = _draw_halves(keyed, sanitizer, noise, fitted, policy, scope, refit_halves)
    leaked = (sanitizer.leaked(rows.schema, each, fitted) for each in noises)
    return ShadowDraws(shadows, halves, tuple(each for each in leaked if each is not None))


def shadow_noise(noise: Noise, scope: Sequence[str], k: int) -> Noise:
    """Return the noise of shadow draw ``k``."""
    return noise.derive("shadow", *scope, str(k))


def _key_by_position(block: Block) -> Block:
    return replace(block, key=encode_positions(np.arange(block.start, block.start + block.n)))


def _draw_halves(
    rows: Rows,
    sanitizer: Sanitizer,
    noise: Noise,
    fitted: Fitted,
    policy: Policy,
    scope: Sequence[str],
    refit: bool,
) -> tuple[HalfRelease, ...]:
    """Return none if a half is too small, or if the method cannot work on half of the records."""
    found = []
    for k in range(policy.splits):
        half_noise = shadow_noise(noise, scope, policy.shadow_draws + k)

        def select_half(block: Block, half_noise: Noise = half_noise) -> Block:
            return select_rows(block, half_noise.ranks(block.key, "half") < 2**63)

        half = rows.map(select_half, rows.schema)
        if min(half.n, rows.n - half.n) < MIN_HALF_RECORDS:
            return ()
        try:
            learned = fitted
            if refit and sanitizer.learns:
                learned = {**sanitizer.fit(half), "scaling": fitted["scaling"]}
            found.append(HalfRelease(half, sanitizer.sanitize(half, half_noise, learned)))
        except BadInput:
            return ()
    return tuple(found)


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """What the attacks run on, in memory."""

    original: OriginalTable
    draws: tuple[ReleaseDraw, ...]
    halves: tuple[ReleaseDraw, ...] = ()
    earlier: EarlierReleases | None = None


def collect_inputs(
    rows: Rows, draws: ShadowDraws, *, row_aligned: bool, part: Ints | None = None
) -> AuditInputs:
    """Load the records and the draws of them; ``row_aligned``: row i is made of record i.

    ``part``: the numbers of the records that are audited; the rows of all others stay where they
    are.
    """
    whole = gather_part(rows, part)
    total = None if part is None else rows.n
    original = OriginalTable(whole.X, whole.label, rows.schema, whole.C, total=total)
    shadows = [collect_draw(shadow, whole.record, part) for shadow in draws.shadows]
    if row_aligned:
        shadows = [replace(shadow, source=None) for shadow in shadows]
    for k, (centre, loadings) in enumerate(draws.leaked_maps):
        leaked = replace(shadows[k].public, centre=centre, loadings=loadings)
        shadows[k] = replace(shadows[k], leaked_map=leaked)
    halves = []
    for half in draws.halves:
        inside = np.concatenate(
            [
                block.record if part is None else block.record[is_in_part(block.record, part)]
                for block in half.rows.blocks()
            ]
        )
        members = np.flatnonzero(np.isin(whole.record, inside))
        halves.append(replace(collect_draw(half.released, whole.record, part), members=members))
    return AuditInputs(original, tuple(shadows), tuple(halves))


def collect_draw(released: Released, records: Ints, part: Ints | None = None) -> ReleaseDraw:
    """Load one draw; ``records`` are the ascending numbers of all records that may be in it."""
    made = gather_part(released.rows, part)
    public, names = released.public, [each.name for each in released.rows.schema.categorical]
    columns = [names.index(response.column.name) for response in public.responses]
    others = None if part is None else OtherRows(released, part, tuple(columns))
    return ReleaseDraw(
        made.X, public, np.searchsorted(records, made.record), made.C[:, columns], others=others
    )


def freeze(array: Any) -> Any:
    """Return a read-only copy: an attack that writes to its view fails loudly."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
