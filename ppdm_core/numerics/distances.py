"""Distances between two tables, computed for a few rows at a time to bound memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ppdm_core.model.arrays import Floats, Ints

BLOCK_BYTES = 64 * 2**20


def row_slices(n: int, width: int) -> Iterator[slice]:
    """Yield slices of ``n`` rows such that ``width`` floats per row fit ``BLOCK_BYTES``."""
    size = max(1, BLOCK_BYTES // (8 * max(width, 1)))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def squared_distances(A: Floats, B: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield (rows of A, their squared Euclidean distances to all rows of B)."""
    origin = B.mean(axis=0)  # |a|^2 - 2ab + |b|^2 cancels badly far from the origin
    A, B = A - origin, B - origin
    norms = np.einsum("ij,ij->i", B, B)
    for rows in row_slices(len(A), len(B)):
        part = A[rows]
        D = (-2.0 * part) @ B.T  # (rows, len(B))
        D += norms
        D += np.einsum("ij,ij->i", part, part)[:, None]
        yield rows, np.maximum(D, 0.0, out=D)


def compute_squared_distances(A: Floats, B: Floats) -> Floats:
    """Return all squared distances at once, (len(A), len(B)); for tables that are small."""
    parts = [D for _, D in squared_distances(A, B)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def compute_distances(A: Floats, B: Floats) -> Floats:
    """Return all distances at once, (len(A), len(B)); for tables that are small."""
    D = compute_squared_distances(A, B)
    return np.sqrt(D, out=D)


def sort_by_distance(A: Floats, B: Floats, place: Ints) -> tuple[Ints, Floats]:
    """Return the given rows of B for each row of A, nearest first, and their squared distances.

    Distances are computed from differences, so that equal rows have a distance of exactly 0.
    """
    t, k = place.shape
    square = np.empty((t, k))
    for rows in row_slices(t, 2 * k * max(A.shape[1], 1)):
        gap = A[rows, None, :] - B[place[rows]]
        square[rows] = np.einsum("ijk,ijk->ij", gap, gap)
    order = np.lexsort((place, square))
    return np.take_along_axis(place, order, axis=1), np.take_along_axis(square, order, axis=1)
