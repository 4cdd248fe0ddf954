"""Confidence intervals of scores, and the most isolated records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import squared_distances

_EXACT_ROWS = 5_000
_REFERENCE_ROWS = 2_000
_NEIGHBOUR = 5


def wilson(successes_mean: float, n: int, level: float) -> tuple[float, float]:
    """Return the Wilson score interval of a rate that was ``successes_mean`` in ``n`` trials."""
    from scipy.special import ndtri

    z2 = float(ndtri((1.0 + level) / 2.0)) ** 2
    p = successes_mean
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    # At p = 0 and p = 1 one end is the rate itself; rounding must not exclude it.
    low = 0.0 if p <= 0 else max(0.0, float(middle - half))
    high = 1.0 if p >= 1 else min(1.0, float(middle + half))
    return low, high


def joint_error_quantile(tail: float) -> float:
    """Return the z that the positive parts of two independent standard errors exceed jointly.

    max(x, 0)^2 + max(y, 0)^2 exceeds z^2 with the probability ``tail``: each of the errors x and y
    is positive with probability 1/2.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    return float(brentq(lambda z: ndtr(-z) + np.exp(-(z**2) / 2) / 4 - tail, 0.0, 40.0))


def jackknife(
    measure: Callable[[Ints], float],
    n: int,
    level: float,
    rng: np.random.Generator,
    groups: int = 20,
) -> tuple[float, float]:
    """Return the interval of ``measure(rows)`` by leaving out one random group of rows at a time.

    A single row has no measurable spread: the interval is then unbounded.
    """
    from scipy.special import stdtrit

    if n < 2:
        return -np.inf, np.inf
    groups = min(groups, max(2, n // 2))
    group = rng.permutation(n) % groups
    without = np.array([measure(np.flatnonzero(group != g)) for g in range(groups)])
    if not np.isfinite(without).all():  # nothing is left to measure without some group
        return -np.inf, np.inf
    spread = np.sqrt((groups - 1) / groups * np.sum((without - without.mean()) ** 2))
    half = float(stdtrit(groups - 1, (1.0 + level) / 2.0) * spread)
    value = measure(np.arange(n))
    return value - half, value + half


def paired_interval(change: Floats, level: float) -> tuple[float, float]:
    """Return the interval of the mean of changes between -1 and 1, by their standard error.

    One additional record on each side (Bonett and Price) gives the interval a width when no record
    changed.
    """
    from scipy.special import stdtrit

    each = np.append(change, [1.0, -1.0])
    n = len(each)
    half = float(stdtrit(n - 1, (1.0 + level) / 2.0) * each.std(ddof=1) / np.sqrt(n))
    return float(each.mean()) - half, float(each.mean()) + half


def find_isolated_tenth(X: Floats, rng: np.random.Generator) -> Ints:
    """Return the tenth of the records that is farthest from its fifth nearest neighbour.

    Above 5,000 records, neighbours are searched among 2,000 random ones.
    """
    n = len(X)
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    reference = np.arange(n)
    if n > _EXACT_ROWS:
        reference = np.sort(rng.choice(n, size=_REFERENCE_ROWS, replace=False))
    own = np.full(n, -1)  # position of a record in the reference
    own[reference] = np.arange(len(reference))
    k = min(_NEIGHBOUR, len(reference) - 1)
    gap = np.empty(n)
    for rows, D in squared_distances(X, X[reference]):
        mine = own[rows]
        met = np.flatnonzero(mine >= 0)
        D[met, mine[met]] = np.inf
        gap[rows] = np.partition(D, k - 1, axis=1)[:, k - 1]
    count = max(1, round(n / 10))
    return np.sort(np.argsort(-gap, kind="stable")[:count])
