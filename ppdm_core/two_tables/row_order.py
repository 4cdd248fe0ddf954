"""Look for original columns that the order of the released rows gives away."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.two_tables.tables import Table

MIN_ROWS = 20
MAX_DEVIATIONS = 6.8  # of a rank correlation by chance: one in 1e11
MIN_CORRELATION = 0.1  # a weaker trend places nobody


def find_sorted_columns(original: Table) -> list[str]:
    """Return the numeric columns that rise or fall along the rows of the original."""
    columns = list_complete_columns(original)
    if original.n < MIN_ROWS or not columns:
        return []
    R = standardise_ranks(original.numbers(columns))
    position = standardise_ranks(np.arange(original.n, dtype=np.float64)[:, None])
    correlation = np.abs(R.T @ position).ravel() / original.n
    least = max(MIN_CORRELATION, MAX_DEVIATIONS / math.sqrt(original.n - 1))
    return [name for name, each in zip(columns, correlation, strict=True) if each >= least]


def find_revealed_columns(original: Table, released: Table) -> Iterator[str]:
    """Yield the original columns by which the released rows were sorted.

    If rows are sorted by a column, rising or falling, then row i belongs to the record with rank
    i, and released values depend on those of that record. A release that is sorted by one of its
    own columns follows any trend; then only differences between adjacent rows are compared.
    """
    ours, theirs = list_complete_columns(original), list_complete_columns(released)
    n, m = original.n, released.n
    if min(n, m) < MIN_ROWS or not ours or not theirs:
        return
    X, Y = original.numbers(ours), released.numbers(theirs)
    prepare = difference_ranks if has_sorted_column(Y) else standardise_ranks
    R, S = standardise_ranks(X), prepare(Y)
    place: Ints = np.minimum(np.arange(m) * n // m, n - 1)  # rank of the record of each row
    least = max(MIN_CORRELATION, MAX_DEVIATIONS / math.sqrt(m - 1))
    for name, x in zip(ours, X.T, strict=True):
        order = np.argsort(x, kind="stable")
        for direction in (order, order[::-1]):
            if np.abs(prepare(R[direction[place]]).T @ S).max() / len(S) >= least:
                yield name
                break


def has_sorted_column(Y: Floats) -> bool:
    """Return whether a column never falls or never rises along the rows."""
    steps = np.diff(Y, axis=0)
    return bool(((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)).any())


def difference_ranks(A: Floats) -> Floats:
    """Return the ranks of the differences between adjacent rows."""
    return standardise_ranks(np.diff(standardise_ranks(A), axis=0))


def list_complete_columns(table: Table) -> list[str]:
    """Return the numeric columns without empty cells that vary."""
    return [
        name
        for name in table.numeric()
        if np.isfinite(table.columns[name]).all() and np.ptp(table.columns[name]) > 0
    ]


def standardise_ranks(A: Floats) -> Floats:
    """Return the ranks of each column with mean 0 and deviation 1."""
    from scipy.stats import rankdata

    ranks = rankdata(A, axis=0)
    centred = ranks - ranks.mean(axis=0)
    return np.asarray(centred / np.maximum(centred.std(axis=0), 1e-300))
