"""Plain K-means in blocks of rows: Lloyd's iteration from several k-means++ starts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import row_slices


@dataclass(frozen=True, eq=False)
class Clusters:
    """A result of K-means."""

    centres: Floats  # (k, s)
    labels: Ints  # (n,) nearest centre; of equally near ones, the first
    inertia: float  # sum of squared distances to the nearest centre
    iterations: int


def find_best_clusters(
    X: Floats, starts: Iterable[Floats], *, max_iterations: int = 300, tolerance: float = 1e-4
) -> Clusters:
    """Return the result of least inertia; center the rows first, for numerical precision.

    A run ends if no row changes its centre, or if the sum of squared moves of the centres is at
    most ``tolerance`` times the mean variance of the columns.
    """
    limit = tolerance * float(X.var(axis=0).mean())
    return min(
        (_run_lloyd(X, start, max_iterations, limit) for start in starts),
        key=lambda run: run.inertia,
    )


def find_nearest_centres(X: Floats, centres: Floats) -> tuple[Ints, Floats]:
    """Return the nearest centre of each row, and the squared distance to it."""
    labels, squares = np.empty(len(X), dtype=np.int64), np.empty(len(X))
    lengths = np.einsum("ij,ij->i", centres, centres)
    for rows in row_slices(len(X), len(centres)):
        D = (-2.0 * X[rows]) @ centres.T  # (rows, k), without the squared lengths of the rows
        D += lengths
        labels[rows] = D.argmin(axis=1)
        squares[rows] = D.min(axis=1) + np.einsum("ij,ij->i", X[rows], X[rows])
    return labels, np.maximum(squares, 0.0, out=squares)


def choose_start(X: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return k rows by k-means++: the best of a few draws, which prefer far rows."""
    trials = 2 + int(math.log(k))
    chosen = [int(rng.integers(len(X)))]
    squares = find_nearest_centres(X, X[chosen])[1]
    for _ in range(1, k):
        reach = np.cumsum(squares)
        drawn = np.searchsorted(reach, rng.random(trials) * reach[-1], side="right")
        drawn = np.minimum(drawn, len(X) - 1)
        options = [np.minimum(squares, find_nearest_centres(X, X[[row]])[1]) for row in drawn]
        best = int(np.argmin([option.sum() for option in options]))
        chosen.append(int(drawn[best]))
        squares = options[best]
    return X[chosen]


def _run_lloyd(X: Floats, start: Floats, max_iterations: int, limit: float) -> Clusters:
    centres, previous, iterations = start, np.full(len(X), -1), 0
    labels, squares = find_nearest_centres(X, centres)
    while iterations < max_iterations and not np.array_equal(labels, previous):
        moved = _update_centres(X, labels, squares, centres)
        shift = float(np.sum((moved - centres) ** 2))
        centres, previous, iterations = moved, labels, iterations + 1
        labels, squares = find_nearest_centres(X, centres)
        if shift <= limit:
            break
    return Clusters(centres, labels, float(squares.sum()), max(iterations, 1))


def _update_centres(X: Floats, labels: Ints, squares: Floats, centres: Floats) -> Floats:
    k = len(centres)
    total = np.zeros_like(centres)
    for rows in row_slices(len(X), k):
        belongs = (labels[rows, None] == np.arange(k)).astype(np.float64)  # (rows, k)
        total += belongs.T @ X[rows]
    count = np.bincount(labels, minlength=k)
    means: Floats = total / np.maximum(count, 1)[:, None]
    empty = np.flatnonzero(count == 0)
    if len(empty):  # restart at the rows that are farthest from their centres
        means[empty] = X[np.argsort(-squares, kind="stable")[: len(empty)]]
    return means
