"""Nearest rows of a table, by exact search in blocks of distances that bound memory."""

# scikit-learn's search is as fast, but its choice among equally near rows depends on threads: 5 %
# of the 5 neighbours of 500 rows among 2,000 with one decimal changed between 1 and 2 threads.

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import row_slices, sort_by_distance

WIDE_ROWS = 16_384  # from here on, the smallest costs are searched in tiles
TILE_PERSONS, TILE_ROWS = 256, 2_048  # of the costs that are computed at a time: they fit the cache
MAX_HELD_HITS = 16  # of each person, before they are merged
_GROUP_SIZE = 64  # entries of a line of which the least is found first
_MIN_GROUPS_PER_PLACE = 4
_MAX_HITS_PER_PLACE = 20  # entries among which the smallest are sorted out
TIE_TOLERANCE = 1e-13  # smaller differences of squared distances, relative to the largest, are ties


@dataclass(frozen=True, eq=False)
class NeighbourBatch:
    """All neighbours of some rows that are at most as far as the k-th one.

    ``weight`` distributes the k places: 1 for a neighbour that is nearer than the k-th, and equal
    parts of the remaining places for those at the distance of the k-th.
    """

    rows: slice
    row: Ints  # position within ``rows``, ascending
    column: Ints  # position of the neighbour; the nearest of a row comes first
    weight: Floats
    is_tied: np.ndarray  # at the distance of the k-th
    open_places: Ints  # (rows,) places that remain for the tied


def find_nearest(A: Floats, B: Floats, k: int, own: Ints | None = None) -> Iterator[NeighbourBatch]:
    """Yield the k nearest rows of ``B`` and all ties for each row of ``A``, in blocks of ``A``.

    ``own`` is the position of each row of ``A`` in ``B``; a row is not its own neighbour. There
    must be k other rows. Memory is bounded except for the number of ties.
    """
    A, B = _centre(A, B)
    largest = float(np.einsum("ij,ij->i", B, B).max())
    for rows, D in _iterate_blocks(A, B):
        if own is not None:
            D[np.arange(len(D)), own[rows]] = np.inf
        tie = TIE_TOLERANCE * (largest + np.einsum("ij,ij->i", A[rows], A[rows]))
        farthest = np.take_along_axis(D, find_smallest_places(D, k), axis=1).max(axis=1)
        row, column = np.divmod(np.flatnonzero((farthest + tie)[:, None] >= D), D.shape[1])
        order = np.lexsort((D[row, column], row))
        row, column = row[order], column[order]
        is_tied = D[row, column] >= (farthest - tie)[row]
        tied = np.bincount(row[is_tied], minlength=len(D))
        open_places = k - (np.bincount(row, minlength=len(D)) - tied)
        weight = np.where(is_tied, (open_places / tied)[row], 1.0)
        yield NeighbourBatch(rows, row, column, weight, is_tied, open_places)


def find_nearest_rows(A: Floats, B: Floats, k: int) -> tuple[Ints, Floats]:
    """Return k nearest rows of B for each row of A, best first, and squared distances; (t, k)."""
    k = min(k, len(B))
    place = np.empty((len(A), k), dtype=np.int64)
    square = np.empty((len(A), k))
    if place.size and k > 1 and len(B) > WIDE_ROWS:
        A, B = _centre(A, B)
        columns = np.vstack([B.T, np.einsum("ij,ij->i", B, B)])
        lines = np.column_stack([-2.0 * A, np.ones(len(A))])
        found = search_tiles(len(A), len(B), k, lambda p, r: lines[p] @ columns[:, r])
        place, square = sort_by_distance(A, B, found.place)
    elif place.size:
        A, B = _centre(A, B)
        for rows, D in _iterate_blocks(A, B):
            place[rows], square[rows] = sort_by_distance(A[rows], B, find_smallest_places(D, k))
    return place, square


class SmallestCosts:
    """The k smallest costs of each person so far, smallest first."""

    def __init__(self, persons: int, k: int) -> None:
        self.place = np.full((persons, k), -1, dtype=np.int64)
        self.cost = np.full((persons, k), np.inf)
        self._held: list[tuple[Ints, Ints, Floats]] = []
        self._count = 0

    def add(self, persons: slice, start: int, C: Floats) -> None:
        """Add the costs of some persons with consecutive rows, the first of which is ``start``.

        A cost that is not below the k-th smallest so far cannot be among the smallest.
        """
        limit = self.cost[persons, -1]
        if not np.isfinite(limit).all():
            k = min(self.cost.shape[1], C.shape[1])
            place = find_smallest_places(C, k)
            limit = np.minimum(limit, np.take_along_axis(C, place, axis=1).max(axis=1))
            limit = np.nextafter(limit, np.inf) if k == self.cost.shape[1] else limit + np.inf
        person, row = np.divmod(np.flatnonzero(limit[:, None] > C), C.shape[1])
        if len(person):
            self._held.append((persons.start + person, start + row, C[person, row]))
            self._count += len(person)
            if self._count > MAX_HELD_HITS * len(limit):
                self.merge()

    def merge(self) -> None:
        """Keep the smallest of the costs that were added."""
        if not self._held:
            return
        person, place, cost = (np.concatenate(each) for each in zip(*self._held, strict=True))
        self._held, self._count = [], 0
        who, which, count = np.unique(person, return_inverse=True, return_counts=True)
        order = np.argsort(which, kind="stable")
        column = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
        width = int(count.max())
        costs = np.full((len(who), width), np.inf)
        places = np.full((len(who), width), -1, dtype=np.int64)
        costs[which[order], column], places[which[order], column] = cost[order], place[order]
        costs, places = np.hstack([self.cost[who], costs]), np.hstack([self.place[who], places])
        keep = np.argsort(costs, axis=1, kind="stable")[:, : self.cost.shape[1]]
        self.cost[who] = np.take_along_axis(costs, keep, axis=1)
        self.place[who] = np.take_along_axis(places, keep, axis=1)


def search_tiles(
    persons: int, rows: int, k: int, compute: Callable[[slice, slice], Floats]
) -> SmallestCosts:
    """Return the k smallest costs of each person; ``compute`` gives those of a tile."""
    found = SmallestCosts(persons, k)
    for first in range(0, persons, TILE_PERSONS):
        who = slice(first, min(first + TILE_PERSONS, persons))
        for start in range(0, rows, TILE_ROWS):
            found.add(who, start, compute(who, slice(start, min(start + TILE_ROWS, rows))))
        found.merge()
    return found


def find_smallest(C: Floats, k: int) -> tuple[Ints, Floats]:
    """Return places and values of the k smallest entries of each line, smallest first; (t, k)."""
    place = find_smallest_places(C, min(k, C.shape[1]))
    value = np.take_along_axis(C, place, axis=1)
    order = np.lexsort((place, value))
    return np.take_along_axis(place, order, axis=1), np.take_along_axis(value, order, axis=1)


def _centre(A: Floats, B: Floats) -> tuple[Floats, Floats]:
    """Return both tables around the mean of B: |b|^2 - 2ab cancels badly far from the origin."""
    origin = B.mean(axis=0)
    return A - origin, B - origin


def _iterate_blocks(A: Floats, B: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield (rows of A, |b|^2 - 2ab for them and all rows of B), which sorts as the distance."""
    columns = np.vstack([B.T, np.einsum("ij,ij->i", B, B)])  # (d + 1, len(B))
    for rows in row_slices(len(A), len(B)):
        yield rows, np.column_stack([-2.0 * A[rows], np.ones(len(A[rows]))]) @ columns


def find_smallest_places(D: Floats, k: int) -> Ints:
    """Return the positions of the k smallest entries of each line, in no order."""
    if k == 1:
        return np.asarray(D.argmin(axis=1)[:, None])
    if k == D.shape[1]:
        return np.tile(np.arange(k), (len(D), 1))
    groups = D.shape[1] // _GROUP_SIZE
    if groups >= _MIN_GROUPS_PER_PLACE * k:
        found = _search_groups(D, k, groups)
        if found is not None:
            return found
    return np.asarray(np.argpartition(D, k - 1, axis=1)[:, :k])


def _search_groups(D: Floats, k: int, groups: int) -> Ints | None:
    """Return the same, several times as fast for long lines; None if very many entries are tied.

    At least k entries are at most as large as the k-th smallest minimum of a group, so that all
    others can be ignored.
    """
    n, m = D.shape
    least = D[:, : groups * _GROUP_SIZE].reshape(n, _GROUP_SIZE, groups).min(axis=1)
    limit = np.partition(least, k - 1, axis=1)[:, k - 1]
    line, column = np.divmod(np.flatnonzero(limit[:, None] >= D), m)
    count = np.bincount(line, minlength=n)
    width = int(count.max(initial=0))
    if not len(count) or count.min() < k or width > _MAX_HITS_PER_PLACE * k:
        return None  # entries that are not numbers, or ties
    place = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
    cost, where = np.full((n, width), np.inf), np.zeros((n, width), dtype=np.int64)
    cost[line, place], where[line, place] = D[line, column], column
    if width == k:
        return where
    return np.take_along_axis(where, np.argpartition(cost, k - 1, axis=1)[:, :k], axis=1)
