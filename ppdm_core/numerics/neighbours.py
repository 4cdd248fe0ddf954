"""Nearest neighbours with their ties, by tiles of distances that fit the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints

TILE_ROWS, TILE_COLUMNS = 256, 2_048  # of a tile
TIE_TOLERANCE = 1e-13  # smaller differences of squared distances, relative to the largest, are ties


@dataclass(frozen=True, eq=False)
class NeighbourBatch:
    """All neighbours of some rows that are at most as far as the k-th one.

    ``weight`` distributes the k places: 1 for a neighbour that is nearer than the k-th, and equal
    parts of the remaining places for those at the distance of the k-th.
    """

    rows: slice
    row: Ints  # position within ``rows``, ascending
    column: Ints  # position of the neighbour
    weight: Floats
    is_tied: np.ndarray  # at the distance of the k-th
    open_places: Ints  # (rows,) places that remain for the tied


def find_nearest(A: Floats, B: Floats, k: int, own: Ints | None = None) -> Iterator[NeighbourBatch]:
    """Yield the k nearest rows of ``B`` for each row of ``A``, some rows of ``A`` at a time.

    ``own`` is the position of each row of ``A`` in ``B``; a row is not its own neighbour. There
    must be k other rows. Memory is bounded except for the number of ties.
    """
    origin = B.mean(axis=0)  # |b|^2 - 2ab cancels badly far from the origin
    A, B = A - origin, B - origin
    norms = np.einsum("ij,ij->i", B, B)
    columns = np.vstack([B.T, norms])  # (d + 1, len(B)): one product gives |b|^2 - 2ab
    largest = float(norms.max())
    for start in range(0, len(A), TILE_ROWS):
        part = A[start : start + TILE_ROWS]
        mine = None if own is None else own[start : start + TILE_ROWS]
        tie = TIE_TOLERANCE * (largest + np.einsum("ij,ij->i", part, part))
        asked = np.column_stack([-2.0 * part, np.ones(len(part))])
        yield _share_places(
            slice(start, start + len(part)), *_search_tiles(asked, columns, k, mine, tie)
        )


def _search_tiles(
    asked: Floats, columns: Floats, k: int, own: Ints | None, tie: Floats
) -> tuple[Ints, Ints, Floats, Floats, int]:
    """Return rows, columns and values of near pairs, sorted by row and value; ties; and k."""
    count, n = len(asked), columns.shape[1]
    width = max(TILE_COLUMNS, 4 * k)
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


def _share_places(
    rows: slice, row: Ints, column: Ints, value: Floats, tie: Floats, k: int
) -> NeighbourBatch:
    """Return the found neighbours with their weights."""
    count = rows.stop - rows.start
    farthest = value[np.searchsorted(row, np.arange(count)) + k - 1]
    is_tied = value >= (farthest - tie)[row]
    tied = np.bincount(row[is_tied], minlength=count)
    open_places = k - (np.bincount(row, minlength=count) - tied)
    weight = np.where(is_tied, (open_places / tied)[row], 1.0)
    return NeighbourBatch(rows, row, column, weight, is_tied, open_places)
