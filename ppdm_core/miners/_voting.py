"""Votes of nearest rows."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import sort_by_distance


def encode_one_hot(codes: Ints, classes: int) -> Floats:
    """Return a table with 1 at the class of each row, else 0, (n, classes)."""
    table = np.zeros((len(codes), classes))
    table[np.arange(len(codes)), codes] = 1.0
    return table


def compute_weights(square: Floats) -> Floats:
    """Return 1/d^2; if rows equal the query, 1 for these and 0 for all others."""
    is_same = square == 0.0
    has_same = is_same.any(axis=1, keepdims=True)
    weights: Floats = np.where(has_same, is_same, 1.0 / np.where(is_same, 1.0, square))
    return weights


def find_nearest(queries: Floats, rows: Floats, k: int) -> tuple[Ints, Floats]:
    """Return places of the k nearest rows, nearest first, and squared distances, (t, k)."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(k, len(rows))).fit(rows)
    return sort_by_distance(queries, rows, search.kneighbors(queries, return_distance=False))


def count_nearest_votes(queries: Floats, rows: Floats, codes: Ints, classes: int, k: int) -> Floats:
    """Return the votes of the k nearest rows, weighted by 1/d^2, (t, classes)."""
    place, square = find_nearest(queries, rows, k)
    return sum_votes(compute_weights(square), codes[place], classes)


def sum_votes(weights: Floats, codes: Ints, classes: int) -> Floats:
    """Return the sums of (t, k) weights by class, (t, classes)."""
    t, k = weights.shape
    cells = np.repeat(np.arange(t), k) * classes + codes.ravel()
    votes: Floats = np.zeros(t * classes)
    np.add.at(votes, cells, weights.ravel())
    return votes.reshape(t, classes)
