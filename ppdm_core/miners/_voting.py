"""Votes of neighbours."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import measured


def one_hot(codes: Ints, classes: int) -> Floats:
    """(n, classes) a 1 where the class is that of the row."""
    table = np.zeros((len(codes), classes))
    table[np.arange(len(codes)), codes] = 1.0
    return table


def weights_of(square: Floats) -> Floats:
    """1/d^2; rows that equal the query are infinitely near, so that only these count."""
    is_same = square == 0.0
    has_same = is_same.any(axis=1, keepdims=True)
    weights: Floats = np.where(has_same, is_same, 1.0 / np.where(is_same, 1.0, square))
    return weights


def nearest(queries: Floats, rows: Floats, k: int) -> tuple[Ints, Floats]:
    """(t, k) places of the nearest rows, nearest first, and their squared distances."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(k, len(rows))).fit(rows)
    return measured(queries, rows, search.kneighbors(queries, return_distance=False))


def nearest_votes(queries: Floats, rows: Floats, codes: Ints, classes: int, k: int) -> Floats:
    """(t, classes) votes of the k nearest rows, by 1/d^2."""
    place, square = nearest(queries, rows, k)
    return summed(weights_of(square), codes[place], classes)


def summed(weights: Floats, codes: Ints, classes: int) -> Floats:
    """(t, classes) from (t, k) weights and the classes they are for."""
    t, k = weights.shape
    cells = np.repeat(np.arange(t), k) * classes + codes.ravel()
    votes: Floats = np.zeros(t * classes)
    np.add.at(votes, cells, weights.ravel())
    return votes.reshape(t, classes)


def stratified_folds(codes: Ints, folds: int) -> Ints:
    """The shuffled rows of each class dealt out in turn; the same for the same classes."""
    rng = np.random.default_rng(0)
    order = np.lexsort((rng.random(len(codes)), codes))
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = np.arange(len(codes)) % folds
    return fold
