"""Votes of nearest rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import row_slices, sort_by_distance


def compute_weights(square: Floats) -> Floats:
    """Return 1/d^2; if rows equal the query, 1 for these and 0 for all others."""
    is_same = square == 0.0
    has_same = is_same.any(axis=1, keepdims=True)
    weights: Floats = np.where(has_same, is_same, 1.0 / np.where(is_same, 1.0, square))
    return weights


def find_nearest(queries: Floats, rows: Floats, k: int) -> Iterator[tuple[slice, Ints, Floats]]:
    """Yield (some queries, places of their k nearest rows, nearest first, squared distances)."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(k, len(rows))).fit(rows)
    for part in row_slices(len(queries), 4 * search.n_neighbors):
        place = search.kneighbors(queries[part], return_distance=False)
        yield part, *sort_by_distance(queries[part], rows, place)


def count_nearest_votes(queries: Floats, rows: Floats, codes: Ints, classes: int, k: int) -> Floats:
    """Return the votes of the k nearest rows, weighted by 1/d^2, (t, classes)."""
    votes = [
        sum_votes(compute_weights(square), codes[place], classes)
        for _, place, square in find_nearest(queries, rows, k)
    ]
    return np.concatenate(votes)


def sum_votes(weights: Floats, codes: Ints, classes: int) -> Floats:
    """Return the sums of (t, k) weights by class, (t, classes)."""
    ends = np.array([weights.shape[1]])
    return sum_first_votes(weights, codes, classes, ends)[:, 0]


def sum_first_votes(weights: Floats, codes: Ints, classes: int, ends: Ints) -> Floats:
    """Return the sums by class of the first ``ends`` of (t, k) weights, (t, ends, classes).

    ``ends`` grow; those beyond k count all k.
    """
    t, k = weights.shape
    piece = np.searchsorted(ends, np.arange(k), side="right")  # of each neighbour
    cells = (np.arange(t)[:, None] * (len(ends) + 1) + piece) * classes + codes
    size = t * (len(ends) + 1) * classes
    votes = np.bincount(cells.ravel(), weights.ravel(), size).astype(np.float64)
    sums: Floats = votes.reshape(t, len(ends) + 1, classes)[:, :-1].cumsum(axis=1)
    return sums
