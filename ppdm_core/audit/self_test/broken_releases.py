"""What a method could turn into when it is broken: bad releases in its own output space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.linear_map import has_map, invert, project
from ppdm_core.numerics.random_orthogonal import random_orthogonal

SLIGHT_NOISE_SHARE = 0.001  # of a released column's range: one such column identifies records
NEAR_NOISE_SHARE = 0.01  # of a released column's range, or less:
NEAR_ERROR, NEAR_RECORDS = 0.05, 0.9  # this share of the records is this near, in their lengths
IDENTITY, SLIGHT_NOISE, NEARLY_IDENTICAL = "identity", "slight noise", "nearly identical"
CLEAR_COLUMNS = "clear columns"  # as many original columns as are released, as they are
NOISE_HOLE, REARRANGED = "noise with a hole", "rearranged values"  # named as the planted leaks
MIN_HOLE_COLUMNS = 3
COPY_NOISE_SHARE = 0.01  # what a copy announces to attacks that ask for the noise

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class BrokenRelease:
    """Rows that are released in place of the right ones, one for each record."""

    Y: Floats  # (n, s)
    C: Codes  # (n, c) released codes
    public: PublicParameters
    label: Codes | None = None  # (n,) released labels; None: those of the records


def make_broken_releases(
    truth: OriginalTable, draw: ReleaseDraw, rng: Rng
) -> Iterator[tuple[str, BrokenRelease]]:
    """Yield the broken releases that fit the released columns and public parameters."""
    X, public, C = truth.X, draw.public, select_true_codes(truth, draw.public)
    d, s = X.shape[1], draw.Y.shape[1]
    if has_map(public):
        clear = project(public, X)
        clear = invert(public, clear) if public.space == "original" else clear
    elif d == s:
        clear = X.copy()
    else:  # identity and rotation do not fit
        columns = np.sort(rng.permutation(d)[:s])
        yield CLEAR_COLUMNS, BrokenRelease(X[:, columns], C, public)
        return
    yield IDENTITY, BrokenRelease(clear, C, public)
    if s:
        scale = SLIGHT_NOISE_SHARE * np.ptp(clear, axis=0)
        noisy = clear + rng.laplace(0.0, scale, clear.shape)
        yield SLIGHT_NOISE, BrokenRelease(noisy, C, public)
    if s == d > 1 and not has_map(public) and public.space != "original":
        yield "rotation", BrokenRelease(X @ random_orthogonal(d, rng), C, public)
    if s and is_complete(public, d, s):
        yield NEARLY_IDENTICAL, BrokenRelease(add_near_noise(X, clear, public, rng), C, public)
    if s >= MIN_HOLE_COLUMNS:
        yield NOISE_HOLE, BrokenRelease(add_noise_with_hole(clear, draw.Y, rng), C, public)
    if d == s >= MIN_HOLE_COLUMNS and public.space == "original":
        yield REARRANGED, BrokenRelease(rng.permuted(clear, axis=1), C, public)


def add_noise_with_hole(clear: Floats, Y: Floats, rng: Rng) -> Floats:
    """Return records with as much noise as the release has, which cancels in one combination.

    The noise of a column is in units of the release's spread; in these units, the noise of every
    row adds up to zero.
    """
    noise = rng.laplace(0.0, 1.0, clear.shape)
    noise -= noise.mean(axis=1, keepdims=True)
    return np.asarray(clear + Y.std(axis=0) * noise)


def is_complete(public: PublicParameters, d: int, s: int) -> bool:
    """Return whether a release without noise determines every original column."""
    if not has_map(public):
        return d == s
    assert public.loadings is not None
    return int(np.linalg.matrix_rank(public.loadings)) == d


def add_near_noise(X: Floats, clear: Floats, public: PublicParameters, rng: Rng) -> Floats:
    """Return rows from which nearly all records are read with a small error.

    Whatever the table and the number of its columns, an attacker who takes the rows as they are
    (through the map, if it is public) is at most NEAR_ERROR of a record's length off, for
    NEAR_RECORDS of the records: the noise is made smaller until that holds.
    """
    noise = rng.laplace(0.0, NEAR_NOISE_SHARE * np.ptp(clear, axis=0), clear.shape)
    in_components = has_map(public) and public.space != "original"
    read = invert(public, clear + noise) - invert(public, clear) if in_components else noise
    error = np.linalg.norm(read, axis=1)
    allowed = NEAR_ERROR * np.linalg.norm(X, axis=1)
    factor = np.divide(allowed, error, out=np.ones(len(X)), where=error > 0)
    smallest = np.quantile(factor, 1 - NEAR_RECORDS, method="lower")
    return np.asarray(clear + min(1.0, smallest) * noise)


def make_copy(truth: OriginalTable, public: PublicParameters) -> BrokenRelease:
    """Return all columns as they are, announced as columns with a little noise."""
    d = truth.X.shape[1]
    columns = PublicParameters(
        method="copy",
        space="original",
        columns=truth.schema.names,
        centre=np.zeros(d),
        loadings=np.eye(d),
        law="laplace",
        scales=COPY_NOISE_SHARE * np.ptp(truth.X, axis=0),
        responses=public.responses,
    )
    return BrokenRelease(truth.X.copy(), select_true_codes(truth, public), columns)


def make_noise(
    truth: OriginalTable, draw: ReleaseDraw, rng: Rng, *, is_label_column: bool = False
) -> BrokenRelease:
    """Return noise with the means and spreads of the release, independent of every record.

    ``is_label_column``: the label counts as a released column, so that it is exchanged, too.
    """
    n, Y = len(truth.X), draw.Y
    noise = Y.mean(axis=0) + Y.std(axis=0) * rng.standard_normal((n, Y.shape[1]))
    columns = [response.column for response in draw.public.responses]
    C = [rng.integers(-column.missing, len(column.categories), n) for column in columns]
    codes = np.array(C, dtype=np.int32).reshape(len(columns), n).T
    label = rng.permutation(truth.label) if is_label_column else None
    return BrokenRelease(noise, codes, draw.public, label)


def select_true_codes(truth: OriginalTable, public: PublicParameters) -> Codes:
    """Return the original codes of the released categorical columns."""
    names = [column.name for column in truth.schema.categorical]
    places = [names.index(response.column.name) for response in public.responses]
    return np.asarray(truth.codes[:, places])


def draw_broken_release(
    release: BrokenRelease, *, is_aligned: bool, members: np.ndarray | None, rng: Rng
) -> ReleaseDraw:
    """Return a draw of all records or of the members; rows without a record are resampled."""
    records = np.arange(len(release.Y)) if members is None else members
    source = records if is_aligned else rng.choice(records, len(records))
    label = None if release.label is None else release.label[source]
    draw = ReleaseDraw(release.Y[source], release.public, source, release.C[source], members, label)
    return replace(draw, source=None) if is_aligned and members is None else draw
