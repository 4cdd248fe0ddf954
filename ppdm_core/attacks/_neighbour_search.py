"""Nearest rows of a large table, in tiles, so that memory stays bounded."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import sort_by_distance

_MAX_EXACT_ROWS = 4_096  # beyond, the best ones of groups are compared
_GROUPS_PER_NEIGHBOUR = 12  # for each requested neighbour
_MAX_GROUP_ROWS = 2_048
_TILE_BYTES = 2**24
_TILE_ROWS = 8_192  # of B


def find_nearest_rows(A: Floats, B: Floats, k: int) -> tuple[Ints, Floats]:
    """Return the k rows of B nearest to each row of A, best first, and squared distances; (t, k).

    The first one is always exact. The others are exact up to 4,096 rows, and above the best ones
    of at least 12 k groups of rows: one that has a still nearer row in its own group is missed.
    """
    n = len(B)
    k = min(k, n)
    place = np.empty((len(A), k), dtype=np.int64)
    square = np.empty((len(A), k))
    if not place.size:
        return place, square
    origin = B.mean(axis=0)  # |b|^2 - 2ab cancels badly far from the origin
    A, B = A - origin, B - origin
    size = n if n <= _MAX_EXACT_ROWS else min(-(-n // (_GROUPS_PER_NEIGHBOUR * k)), _MAX_GROUP_ROWS)
    lifted = _lift_rows(B, size)
    step = max(1, _TILE_BYTES // (8 * min(len(lifted), _TILE_ROWS)))
    for start in range(0, len(A), step):
        part = slice(start, start + step)
        ahead = np.column_stack([A[part], np.ones(len(A[part]))])
        found = (
            _smallest_of_all(ahead @ lifted.T, k)
            if size == n
            else _smallest_of_groups(ahead, lifted, k, size)
        )
        place[part], square[part] = sort_by_distance(A[part], B, found)
    return place, square


def _lift_rows(B: Floats, size: int) -> Floats:
    """Return rows (-2b, |b|^2), and infinitely far ones that fill the last group."""
    n, q = B.shape
    lifted = np.zeros((-(-n // size) * size, q + 1))
    lifted[:n, :q] = -2.0 * B
    lifted[:n, q] = np.einsum("ij,ij->i", B, B)
    lifted[n:, q] = np.inf
    return lifted


def _smallest_of_all(D: Floats, k: int) -> Ints:
    """Return the positions of the k smallest entries of each line, in no order."""
    if k == 1:
        return np.asarray(D.argmin(axis=1)[:, None])
    if k == D.shape[1]:
        return np.tile(np.arange(k), (len(D), 1))
    return np.asarray(np.argpartition(D, k - 1, axis=1)[:, :k])


def _smallest_of_groups(ahead: Floats, lifted: Floats, k: int, size: int) -> Ints:
    """Return the best k of the best rows of all groups."""
    t, groups = len(ahead), len(lifted) // size
    place, least = np.empty((t, groups), dtype=np.int64), np.empty((t, groups))
    at_once = max(1, _TILE_ROWS // size)  # groups
    for first in range(0, groups, at_once):
        here = slice(first, min(first + at_once, groups))
        tile = ahead @ lifted[here.start * size : here.stop * size].T
        D = tile.reshape(t, -1, size)
        best = D.argmin(axis=2)
        place[:, here] = best + np.arange(here.start, here.stop) * size
        least[:, here] = np.take_along_axis(D, best[:, :, None], axis=2)[:, :, 0]
    return np.take_along_axis(place, _smallest_of_all(least, k), axis=1)


def find_smallest(C: Floats, k: int) -> tuple[Ints, Floats]:
    """Return positions and values of the k smallest entries of each line, smallest first; (t, k).

    In long lines these are the smallest ones of groups, as in ``find_nearest_rows``.
    """
    t, n = C.shape
    k = min(k, n)
    if n <= _MAX_EXACT_ROWS:
        place = _smallest_of_all(C, k)
    else:
        size = min(-(-n // (_GROUPS_PER_NEIGHBOUR * k)), _MAX_GROUP_ROWS)
        grouped = n // size * size
        first = C[:, :grouped].reshape(t, -1, size).argmin(axis=2) + np.arange(0, grouped, size)
        rest = np.tile(np.arange(grouped, n), (t, 1))
        found = np.hstack([first, rest])
        place = np.take_along_axis(
            found, _smallest_of_all(np.take_along_axis(C, found, axis=1), k), axis=1
        )
    value = np.take_along_axis(C, place, axis=1)
    order = np.lexsort((place, value))
    return np.take_along_axis(place, order, axis=1), np.take_along_axis(value, order, axis=1)
