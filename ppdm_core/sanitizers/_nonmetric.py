"""Non-metric scaling: coordinates whose distances have the order of given dissimilarities.

Pairs are condensed (i < j, row by row). ``delta`` are dissimilarities of the records, ``d``
distances of their coordinates ``Y``, ``fit`` the disparities: the non-decreasing function of
``delta`` that is nearest to ``d``. Stress-1 is sqrt(sum (d - fit)^2 / sum d^2).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.sanitizers._basis import fix_signs

MAX_LEVELS = 20_000  # more levels of dissimilarity than this are merged where that is harmless
MAX_MERGING_RATIO = 1.05  # of the stresses with merged and with exact levels; harmless below
MAX_KNOTS = 200  # knots of the stored monotone map
TIE_SHARE = 2.0**-30  # smaller differences, as a share of the largest dissimilarity, are ties
MEMORY_STEPS = 10  # steps that the curvature is estimated from
MAX_HALVINGS = 30
ARMIJO_SHARE = 1e-4  # least share of the decrease that the slope predicts (Armijo)
PATIENCE_STEPS = (
    3  # steps that are judged together, because a short one may be followed by long ones
)
EXCELLENT_STRESS = 0.025  # stress, in Kruskal's words; below it steps are judged as if it were this

Pair = tuple[Floats, Floats, float]  # step, change of the gradient, their product


@dataclass(frozen=True, eq=False)
class DissimilarityOrder:
    """The order of the dissimilarities, which is all that the descent uses of them."""

    level: Ints  # (pairs,) 0 for the smallest dissimilarity; equal ones share a level
    counts: Ints  # (levels,)
    ties: str  # "primary": within a level the fit is free; "secondary": it is one value

    def fit(self, d: Floats) -> Floats:
        """Return the disparities: the non-decreasing function of the order nearest to ``d``."""
        from scipy.optimize import isotonic_regression

        if self.ties == "secondary":
            means = np.bincount(self.level, d) / self.counts
            levels: Floats = isotonic_regression(means, weights=self.counts).x
            return levels[self.level]
        place = np.argsort(self.level + d * (0.5 / max(d.max(), 1e-300)))
        fit = np.empty_like(d)
        fit[place] = isotonic_regression(d[place]).x
        return fit


def rank_dissimilarities(delta: Floats, ties: str) -> DissimilarityOrder:
    """Return the order of dissimilarities, with ties as requested."""
    rounded = np.rint(delta / (TIE_SHARE * delta.max()))
    _, level, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    return DissimilarityOrder(level, counts, ties)


def merge_levels(order: DissimilarityOrder, delta: Floats) -> DissimilarityOrder:
    """Return an order with at most MAX_LEVELS levels, each of neighbours in the given order.

    Neighbours are merged if both their ranks and their dissimilarities are close: ranks alone would
    merge the few shortest pairs, dissimilarities alone most pairs of a table with a far record.
    """
    if len(order.counts) <= MAX_LEVELS:
        return order
    rank = np.cumsum(order.counts) - order.counts
    value = np.empty(len(order.counts))
    value[order.level] = delta
    steps = MAX_LEVELS // 2
    by_rank = rank * steps // len(delta)
    by_value = np.floor(value * ((steps - 1) / value[-1]))
    is_first = (np.diff(by_rank, prepend=0) > 0) | (np.diff(by_value, prepend=by_value[0]) > 0)
    merged = np.cumsum(is_first)
    counts = np.bincount(merged, order.counts).astype(np.int64)
    return DissimilarityOrder(merged[order.level], counts, order.ties)


def compute_classical_start(X: Floats, p: int) -> Floats:
    """Return the classical scaling of Euclidean distances: the leading principal components."""
    centred = X - X.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ fix_signs(vectors[:, ::-1][:, :p]))


def draw_random_start(delta: Floats, n: int, p: int, rng: np.random.Generator) -> Floats:
    """Draw independent normal coordinates with distances of the size of the dissimilarities."""
    scale = np.sqrt(np.mean(delta**2) / (2 * p))
    return np.asarray(scale * rng.standard_normal((n, p)))


def lay_out(
    Y: Floats, delta: Floats, order: DissimilarityOrder, tolerance: float, iterations: int
) -> tuple[Floats, float]:
    """Minimise the squared stress from a start; return coordinates and their stress.

    A fit to merged levels takes much less time than one to many levels. It is not better than the
    exact fit, and as the exact fit is a projection on a convex cone, the squared difference of the
    two fits is at most that of their errors. So steps use merged levels while these hardly change
    the stress. Near an exact layout they would change it: the stress is then that of merging.
    """
    from scipy.spatial.distance import pdist

    merged = merge_levels(order, delta) if order.ties == "secondary" else order
    if merged is not order:
        d = pdist(Y)
        if compute_stress(d, merged) <= MAX_MERGING_RATIO * compute_stress(d, order):
            Y, path = descend(Y, merged, tolerance, iterations)
            stress = compute_stress(pdist(Y), order)
            if path[-1] <= MAX_MERGING_RATIO * stress:
                return Y, stress
            iterations -= len(path) - 1
    Y, path = descend(Y, order, tolerance, iterations)
    return Y, float(path[-1])


def compute_stress(d: Floats, order: DissimilarityOrder) -> float:
    """Return stress-1, or 1 if all points coincide."""
    error = d - order.fit(d)
    T = float(d @ d)
    return math.sqrt(float(error @ error) / T) if T else 1.0


def compute_stress_and_gradient(Y: Floats, order: DissimilarityOrder) -> tuple[float, Floats]:
    """Return squared stress-1 and its gradient.

    The disparities are optimal for Y, so that to first order their change adds nothing (envelope
    theorem): the gradient with fixed disparities is exact.
    """
    from scipy.spatial.distance import pdist, squareform

    d = pdist(Y)
    fit = order.fit(d)
    T = float(d @ d)
    if T == 0:
        return 1.0, np.zeros_like(Y)
    error = d - fit
    A = float(error @ error)
    error -= d * (A / T)
    slope = np.divide(error, d, out=error, where=d > 0)  # at d = 0 any finite slope is valid
    W = squareform(slope, checks=False)  # (n, n)
    G = W.sum(axis=1)[:, None] * Y - W @ Y
    return A / T, G * (2 / T)


def descend(
    Y: Floats, order: DissimilarityOrder, tolerance: float, iterations: int
) -> tuple[Floats, Floats]:
    """Minimise the squared stress; return coordinates, and the stress after every step.

    The quasi-Newton descent ends when three steps lower the stress by less than ``tolerance`` of
    itself, or of 0.025 if it is lower: further gains would not move any point noticeably. It also
    ends at a stress that is only rounding, so that an exact layout is not moved. No accepted step
    raises the stress.
    """
    value, G = compute_stress_and_gradient(Y, order)
    stress = [math.sqrt(value)]
    majorisation = float(np.sum((Y - Y.mean(axis=0)) ** 2)) / 2  # its step, in gradients
    memory: deque[Pair] = deque(maxlen=MEMORY_STEPS)
    for _ in range(iterations):
        if stress[-1] < TIE_SHARE:
            break
        found = search_line(Y, value, G, -apply_inverse_hessian(G, memory, majorisation), order)
        if found is None:
            break
        Y_next, value, G_next = found
        moved, turned = Y_next - Y, G_next - G
        if (curve := float(np.vdot(moved, turned))) > 0:
            memory.append((moved, turned, curve))
        Y, G = Y_next, G_next
        stress.append(math.sqrt(value))
        before = stress[max(0, len(stress) - 1 - PATIENCE_STEPS)]
        if len(stress) > PATIENCE_STEPS and before - stress[-1] < tolerance * max(
            before, EXCELLENT_STRESS
        ):
            break
    return Y, np.array(stress)


def apply_inverse_hessian(G: Floats, memory: Sequence[Pair], first: float) -> Floats:
    """Return the inverse Hessian, estimated from the last steps (L-BFGS), times the gradient."""
    Q = G.copy()
    shares = []
    for moved, turned, curve in reversed(memory):
        shares.append(float(np.vdot(moved, Q)) / curve)
        Q -= shares[-1] * turned
    if memory:
        _, turned, curve = memory[-1]
        first = curve / float(np.vdot(turned, turned))
    Q *= first
    for (moved, turned, curve), share in zip(memory, reversed(shares), strict=True):
        Q += (share - float(np.vdot(turned, Q)) / curve) * moved
    return Q


def search_line(
    Y: Floats, value: float, G: Floats, step: Floats, order: DissimilarityOrder
) -> tuple[Floats, float, Floats] | None:
    """Return the longest of a step and its halves that lowers the stress enough, or None."""
    slope = float(np.vdot(G, step))
    for halvings in range(MAX_HALVINGS):
        share = 0.5**halvings
        trial = Y + share * step
        reached, gradient = compute_stress_and_gradient(trial, order)
        if reached < value and reached <= value + ARMIJO_SHARE * share * slope:
            return trial, reached, gradient
    return None


def least_squares_scale(delta: Floats, d: Floats) -> float:
    """Return the factor of the distances that is nearest to the dissimilarities."""
    square = float(d @ d)
    return float(d @ delta) / square if square else 0.0


def median_gap(d: Floats) -> float:
    """Return the median distance of a record from its nearest neighbour."""
    from scipy.spatial.distance import squareform

    D = squareform(d, checks=False)  # (n, n)
    np.fill_diagonal(D, np.inf)
    return float(np.median(D.min(axis=1)))


def fit_monotone_map(delta: Floats, fit: Floats, farthest: float) -> Floats:
    """Return knots (k, 2) of a non-decreasing function from dissimilarity to distance.

    Between the extreme pairs it is the fit, averaged over equal numbers of pairs; outside it is
    extrapolated with the slope of its outer tenth, down to 0 and up to ``farthest``, the largest
    distance of two records.
    """
    starts = np.unique(np.arange(MAX_KNOTS) * len(delta) // MAX_KNOTS)
    counts = np.diff(np.append(starts, len(delta)))
    # The fit does not decrease with delta, so each can be sorted without the other.
    x, y = (np.add.reduceat(np.sort(values), starts) / counts for values in (delta, fit))
    tenth = max(1, len(x) // 10)

    def slope(a: int, b: int) -> float:
        return float((y[b] - y[a]) / (x[b] - x[a])) if x[b] > x[a] else 0.0

    low = max(0.0, float(y[0]) - slope(0, min(tenth, len(x) - 1)) * float(x[0]))
    end = len(x) - 1
    top = max(farthest, 2 * float(x[end]))
    high = float(y[end]) + slope(max(0, end - tenth), end) * (top - float(x[end]))
    return np.column_stack([np.concatenate([[0.0], x, [top]]), np.concatenate([[low], y, [high]])])
