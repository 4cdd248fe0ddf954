"""Nearest neighbours with their ties, by tiles of distances that a processor keeps at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints

ROWS, COLUMNS = 256, 2_048  # of a tile
TIE = 1e-13  # squared distances that differ by less, in units of the largest, are equal


@dataclass(frozen=True, eq=False)
class Near:
    """All neighbours of some rows that are at most as far as the k-th.

    ``weight`` shares the k places out: 1 for whoever is nearer than the k-th, and what is left
    in equal parts for those that are as far as it.
    """

    rows: slice
    row: Ints  # place within ``rows``, ascending
    column: Ints  # the neighbour
    weight: Floats
    is_tied: np.ndarray  # as far as the k-th
    room: Ints  # (rows,) places that are left for the tied


def nearest(A: Floats, B: Floats, k: int, own: Ints | None = None) -> Iterator[Near]:
    """The k nearest rows of ``B`` for each of ``A``, some rows of ``A`` at a time.

    ``own`` is where a row of ``A`` itself stands in ``B``; it is no neighbour of itself. There
    must be k others. Memory is bounded, but for as many ties as there are in the tables.
    """
    origin = B.mean(axis=0)  # |b|^2 - 2ab cancels badly far from the origin
    A, B = A - origin, B - origin
    norms = np.einsum("ij,ij->i", B, B)
    columns = np.vstack([B.T, norms])  # (d + 1, len(B)): one product gives |b|^2 - 2ab
    largest = float(norms.max())
    for start in range(0, len(A), ROWS):
        part = A[start : start + ROWS]
        mine = None if own is None else own[start : start + ROWS]
        tie = TIE * (largest + np.einsum("ij,ij->i", part, part))
        asked = np.column_stack([-2.0 * part, np.ones(len(part))])
        yield _shared_out(slice(start, start + len(part)), *_searched(asked, columns, k, mine, tie))


def _searched(
    asked: Floats, columns: Floats, k: int, own: Ints | None, tie: Floats
) -> tuple[Ints, Ints, Floats, Floats, int]:
    """Rows, columns and values of what is near, sorted by row and value; ties; and k."""
    count, n = len(asked), columns.shape[1]
    width = max(COLUMNS, 4 * k)
    row = column = np.zeros(0, dtype=np.int64)
    value = np.zeros(0)
    bound = np.full(count, np.inf)
    for number, start in enumerate(range(0, n, width)):
        D = asked @ columns[:, start : start + width]  # (rows, columns) of this tile
        if own is not None:
            met = np.flatnonzero((start <= own) & (own < start + width))
            D[met, own[met] - start] = np.inf
        if number == 0 and D.shape[1] > k:
            bound = np.partition(D, k - 1, axis=1)[:, k - 1]
        place = np.flatnonzero((bound + tie)[:, None] >= D)
        found, where = np.divmod(place, D.shape[1])
        row, column = np.concatenate([row, found]), np.concatenate([column, where + start])
        value = np.concatenate([value, D.ravel()[place]])
        is_last = start + width >= n
        if is_last or number & (number - 1) == 0:  # after 1, 2, 4, 8, ... tiles
            order = np.lexsort((value, row))
            row, column, value = row[order], column[order], value[order]
            first = np.searchsorted(row, np.arange(count))
            bound = value[first + k - 1]
            near = (value <= (bound + tie)[row]) & (value < np.inf)
            row, column, value = row[near], column[near], value[near]
    return row, column, value, tie, k


def _shared_out(rows: slice, row: Ints, column: Ints, value: Floats, tie: Floats, k: int) -> Near:
    count = rows.stop - rows.start
    farthest = value[np.searchsorted(row, np.arange(count)) + k - 1]
    is_tied = value >= (farthest - tie)[row]
    tied = np.bincount(row[is_tied], minlength=count)
    room = k - (np.bincount(row, minlength=count) - tied)
    weight = np.where(is_tied, (room / tied)[row], 1.0)
    return Near(rows, row, column, weight, is_tied, room)
