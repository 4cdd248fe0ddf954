"""Look for releases in which records were mixed with each other in a way that can be undone.

A row of such a release belongs to no record, so that no attack on single rows finds anything. Still
everybody who undoes the mixing has all records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Bools, Floats
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.two_tables.row_order import (
    compute_least_correlation,
    list_complete_columns,
    standardise,
    standardise_ranks,
)
from ppdm_core.two_tables.tables import Table

MIN_ROWS = 50
MIN_PERMUTED_VALUES = 10  # of fewer, independent rows can have the same ones
LEAST_VARIANCE = 1e-9  # of a direction, as a share of the largest one
SPREADS = (0.5, 2.0)  # variances of a release in directions in which the records have 1
MAX_CHANCE = 1e-8  # probability that independent rows agree so well
MAX_MEAN_SQUARE = 0.25  # of the differences, in deviations by chance
EQUAL_SPECTRA = 1e-7  # relative difference of eigenvalues that are equal but for rounding
MIN_SPECTRUM = 3  # columns
MAX_RESEMBLANCE = 4.0  # correlation of adjacent values, in deviations by chance
MEDIAN_OF_NORMAL = 0.6745  # of absolute values


def has_moments_of_records(original: Table, released: Table, label: str | None) -> bool:
    """Return whether the release has the second moments of the original, nearer than by chance.

    Rows that an orthogonal matrix mixes, such as a cosine transform or a secret one, have exactly
    the moments of the records. Those of independent rows differ by their sampling error. If the
    columns have other names, the eigenvalues of the moments are compared.
    """
    ours, theirs = (list_complete_columns(table, label) for table in (original, released))
    common = [name for name in ours if name in theirs]
    if min(original.n, released.n) < MIN_ROWS:
        return False
    if len(common) > 1:
        X, Y = original.numbers(common), released.numbers(common)
        return any(agree_too_well(X - x, Y - y) for x, y in list_centres(X, Y))
    if len(ours) == len(theirs) >= MIN_SPECTRUM:
        X, Y = original.numbers(ours), released.numbers(theirs)
        return any(have_equal_spectra(A, B) for A in list_readings(X) for B in list_readings(Y))
    return False


def list_centres(X: Floats, Y: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield what both tables are measured from: their means, and the origin."""
    yield X.mean(axis=0), Y.mean(axis=0)
    origin = np.zeros(X.shape[1])
    yield origin, origin


def agree_too_well(X: Floats, Y: Floats) -> bool:
    """Return whether the products of columns agree better than those of independent rows.

    In coordinates in which the records are uncorrelated, the mean products of independent rows
    differ from 0 by their standard error. Squares are left out: a few values determine them.
    """
    from scipy.special import chdtr

    spread = np.sqrt((X**2).mean(axis=0))
    if not (spread > 0).all():
        return False
    X, Y = X / spread, Y / spread
    values, vectors = decompose_symmetric(X.T @ X / len(X))
    keep = values > LEAST_VARIANCE * values.max()
    W = Y @ vectors[:, keep] / np.sqrt(values[keep])
    variances = (W**2).mean(axis=0)
    W = W[:, (variances > SPREADS[0]) & (variances < SPREADS[1])]
    if W.shape[1] < 2:
        return False
    squares, pairs = W**2, np.triu_indices(W.shape[1], 1)
    products = (W.T @ W / len(W))[pairs]
    deviations = (squares.T @ squares / len(W))[pairs] - products**2
    total = float((products**2 / np.maximum(deviations, 1e-300)).sum()) * len(W)
    count = len(products)
    return total <= MAX_MEAN_SQUARE * count and chdtr(count, total) < MAX_CHANCE


def have_equal_spectra(A: Floats, B: Floats) -> bool:
    """Return whether the second moments have proportional eigenvalues, but for rounding."""
    spectra = [decompose_symmetric(each.T @ each / len(each))[0] for each in (A, B)]
    first, second = (each / max(each.sum(), 1e-300) for each in spectra)
    return bool(np.abs(first - second).max() < EQUAL_SPECTRA)


def list_readings(A: Floats) -> Iterator[Floats]:
    """Yield a table as it is, with columns of mean 0, and with columns of deviation 1, too."""
    yield A
    yield A - A.mean(axis=0)
    yield standardise(A)


def find_permuted_columns(original: Table, released: Table, label: str | None) -> Iterator[str]:
    """Yield the released columns that hold exactly the values of an original one, in another order.

    Row numbers and ranks are left out: independent rows can have the same ones.
    """
    if original.n != released.n:
        return
    ours = {
        digest_values(cells): cells for name, cells in original.columns.items() if name != label
    }
    for name, cells in released.columns.items():
        if name == label or not tells_by_values(cells):
            continue
        source = ours.get(digest_values(cells))
        if source is not None and source.tolist() != cells.tolist():
            yield name


def tells_by_values(cells: NDArray[Any]) -> bool:
    """Return whether independent rows hardly have exactly the values of this column."""
    values = np.unique(cells[~np.isnan(cells)] if cells.dtype == np.float64 else cells.astype(str))
    if len(values) < MIN_PERMUTED_VALUES:
        return False
    if cells.dtype != np.float64 or len(values) < len(cells):
        return True
    return bool(np.ptp(np.diff(values)) > 1e-9 * np.ptp(values))


def digest_values(cells: NDArray[Any]) -> bytes:
    """Return a digest of the values of a column, whatever their order."""
    if cells.dtype == np.float64:
        return hashlib.sha256(np.sort(cells + 0.0).tobytes()).digest()
    return hashlib.sha256("\0".join(sorted(map(str, cells.tolist()))).encode()).digest()


def find_moved_columns(original: Table, released: Table, label: str | None) -> Iterator[str]:
    """Yield the columns whose values were moved or transformed along the rows.

    Both columns are compared at every distance between the rows, in both directions, and after
    common transforms, which are their own inverse but for the scale, or that of each other. Noise
    that is added to a record gives a correlation of rows and records in the same order, which does
    not count here.
    """
    n = original.n
    ours, theirs = (list_complete_columns(table, label) for table in (original, released))
    common = [name for name in ours if name in theirs]
    if n != released.n or n < MIN_ROWS or not common:
        return
    Y = released.numbers(common)
    R, S = standardise_ranks(original.numbers(common)), standardise_ranks(Y)
    peak = np.abs(R).max(axis=0)
    least = compute_least_correlation(n, peak * np.abs(S).max(axis=0))
    # Smooth columns resemble any transform of each other.
    is_ordered = any(resemble_neighbours(each).any() for each in (R, S))
    transformed = [] if is_ordered else [standardise_ranks(each) for each in list_transforms(Y)]
    for j, name in enumerate(common):
        before, after = np.fft.rfft(R[:, j]), np.fft.rfft(S[:, j])
        moved, turned = (
            np.abs(np.fft.irfft(after * each, n)) / n for each in (before.conj(), before)
        )
        in_place = float(moved[0])
        # Where neighbours resemble each other, in both tables, every distance does.
        usual = float(np.median(np.concatenate([moved, turned]))) * np.sqrt(n) / MEDIAN_OF_NORMAL
        bound = least[j] * max(1.0, usual)
        found = max((float(abs(each[:, j] @ R[:, j])) / n for each in transformed), default=0.0)
        if max(moved.max(), turned.max()) > in_place + bound or found > bound:
            yield name


def resemble_neighbours(R: Floats) -> Bools:
    """Return in which columns of mean 0 and deviation 1 adjacent values are correlated."""
    products = np.abs(np.einsum("ij,ij->j", R[1:], R[:-1]))
    return np.asarray(products > MAX_RESEMBLANCE * np.sqrt(len(R)))


def list_transforms(Y: Floats) -> Iterator[Floats]:
    """Yield cosine, sine and Hartley transforms of all columns along the rows."""
    from scipy.fft import dct, dst, fft

    for kind in (1, 2, 3, 4):
        yield dct(Y, kind, axis=0, norm="ortho")
        yield dst(Y, kind, axis=0, norm="ortho")
    spectrum = fft(Y, axis=0)
    yield spectrum.real - spectrum.imag
