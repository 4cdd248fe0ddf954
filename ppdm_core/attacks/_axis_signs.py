"""Signs of principal axes: compare two tables with the same columns up to their signs."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints

MAX_AXES = 20  # for which all combinations of signs are tried
_BLOCK_PAIRS = 2**15  # at a time: fits the processor cache


@dataclass(frozen=True, eq=False)
class SignEvidence:
    """For each axis, how much nearer the tables are with equal signs than with opposite ones."""

    difference: Floats  # (s,) of the mean distances; positive: equal signs
    error: Floats  # (s,) its standard error

    @property
    def z(self) -> Floats:
        """Difference in standard errors; 0 where the error is 0."""
        return _divide(self.difference, self.error)

    @property
    def signs(self) -> Floats:
        """Likelier sign of each axis."""
        return take_signs(self.difference)


def compute_coordinate_evidence(A: Floats, B: Floats) -> SignEvidence:
    """Compare signs axis by axis, by the energy distance of the two one-dimensional distributions.

    Of the energy distance only the mean of |a - b| over all pairs depends on the sign. If the
    distribution of an axis is symmetric about zero, ``z`` spreads no wider than a standard normal
    number.
    """
    differences, errors = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    for k in range(A.shape[1]):
        a, b = A[:, k], B[:, k]
        of_a = mean_distances(-a, b) - mean_distances(a, b)  # (p,) gain of each record
        of_b = mean_distances(-b, a) - mean_distances(b, a)  # (n,)
        differences[k] = of_a.mean()
        errors[k] = np.sqrt(of_a.var() / len(a) + of_b.var() / len(b))
    return SignEvidence(differences, errors)


def mean_distances(points: Floats, b: Floats) -> Floats:
    """Return the mean over ``b`` of |t - b| for each point t, by sorting."""
    b = np.sort(b)
    sums = np.append(0.0, np.cumsum(b))
    below = np.searchsorted(b, points)
    n = len(b)
    means: Floats = (points * (2 * below - n) + sums[n] - 2 * sums[below]) / n
    return means


def compute_moment_evidence(A: Floats, B: Floats, mean_variance: Floats | None) -> Floats:
    """Return the log likelihood ratio of equal to opposite signs by odd moments and means, (s,).

    A central moment of the small table equals that of the large table, or its negative, plus a
    normal error. ``mean_variance`` is that of A's column means; None where means tell nothing.
    """
    total = np.zeros(A.shape[1])
    if mean_variance is not None:
        total += _divide(2 * A.mean(axis=0) * B.mean(axis=0), mean_variance)
    spread = B.std(axis=0)
    X, Y = (_divide(T - T.mean(axis=0), np.broadcast_to(spread, T.shape)) for T in (A, B))
    for power in (3, 5):
        # The mean is estimated, too, which removes the linear part of the error.
        variance = (Y**power - power * np.mean(Y ** (power - 1), axis=0) * Y).var(axis=0)
        product = np.mean(X**power, axis=0) * np.mean(Y**power, axis=0)
        total += _divide(2 * len(A) * product, variance)
    return total


def sum_cross_distances(A: Floats, B: Floats, free: Ints) -> Floats:
    """Return the sum over all pairs of |a D - b| for every sign choice D of the free columns.

    Element c flips column free[k] where bit k of c is set. Gray order, so that one step flips one
    column, which adds a rank-one matrix to the squared distances. Exact, O(2^free pairs).
    """
    if len(free) > MAX_AXES:
        raise ValueError(f"{len(free)} signs are too many to try all")
    size = max(1, _BLOCK_PAIRS // len(A))
    blocks = [B[start : start + size] for start in range(0, len(B), size)]
    with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1)) as pool:
        parts = pool.map(lambda block: _sum_block_distances(A, block, free), blocks)
        return np.asarray(sum(parts))


def _sum_block_distances(A: Floats, B: Floats, free: Ints) -> Floats:
    """Return the sums of ``sum_cross_distances`` over the pairs with one block of ``B``."""
    D = np.square(A).sum(axis=1)[:, None] + np.square(B).sum(axis=1) - 2 * A @ B.T
    D += 1e-12 * D.max(initial=0.0)  # rounding must not make a square negative
    steps = [4 * np.multiply.outer(A[:, k], B[:, k]) for k in free]
    root = np.empty_like(D)
    terms = np.empty(2 ** len(free))
    code = 0
    terms[0] = np.sqrt(np.abs(D, out=D), out=root).sum()
    for number in range(1, len(terms)):
        k = (number & -number).bit_length() - 1  # the lowest set bit
        code ^= 1 << k
        flip = np.add if code >> k & 1 else np.subtract
        flip(D, steps[k], out=D)
        terms[code] = np.sqrt(D, out=root).sum()
    return terms


def choose_signs_jointly(A: Floats, B: Floats, signs: Floats, free: Ints) -> Floats:
    """Return ``signs`` with the free ones chosen jointly by the least energy distance."""
    code = int(np.argmin(sum_cross_distances(A * signs, B, free)))
    flips = np.ones(len(signs))
    flips[free] = 1.0 - 2.0 * (code >> np.arange(len(free)) & 1)
    return np.asarray(signs * flips)


def take_signs(values: Floats) -> Floats:
    """Return -1 for negative values and 1 for all others."""
    return np.where(values < 0, -1.0, 1.0)


def _divide(values: Floats, by: Floats) -> Floats:
    """Divide element by element; 0 where the divisor is not positive."""
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)
