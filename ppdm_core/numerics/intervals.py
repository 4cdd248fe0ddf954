"""Confidence intervals of scores, and the most isolated records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.distances import squared_distances
from ppdm_core.numerics.neighbours import find_smallest_places

IntervalAtLevel = Callable[[float], tuple[float, float]]  # low and high end at a level
_EXACT_ROWS = 5_000
_REFERENCE_ROWS = 2_000
_NEIGHBOUR = 5


def clopper_pearson(successes: float, n: float, level: float) -> tuple[float, float]:
    """Return the interval of a rate with so many successes in ``n`` trials.

    Each end misses the true rate with a probability of at most (1 - level) / 2, for every rate and
    n. Parts of a success, as in a mean over several draws, are interpolated.
    """
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = float(betaincinv(successes, n - successes + 1.0, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1.0, n - successes, 1.0 - tail)) if successes < n else 1.0
    return low, high


def find_quantile_ranks(n: int, share: float, tail: float) -> tuple[int, int]:
    """Return the ranks, from 1, of the sorted values below and above a quantile.

    The first is above the quantile, and the second below it, with a probability of at most
    ``tail``. They are 0 and n + 1 if there is no such value.
    """
    from scipy.stats import binom

    ranks = np.arange(
        n + 2
    )  # the value of rank r is above if fewer than r are at most the quantile
    below = int(ranks[:-1][binom.cdf(ranks[:-1] - 1, n, share) <= tail][-1])
    above = int(ranks[1:][binom.sf(ranks[1:] - 1, n, share) <= tail][0])
    return below, above


def joint_error_quantile(tail: float) -> float:
    """Return the z that the positive parts of two independent standard errors exceed jointly.

    max(x, 0)^2 + max(y, 0)^2 exceeds z^2 with the probability ``tail``: each of the errors x and y
    is positive with probability 1/2.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    return float(brentq(lambda z: ndtr(-z) + np.exp(-(z**2) / 2) / 4 - tail, 0.0, 40.0))


def jackknife(
    measure: Callable[[Ints], float], n: int, rng: np.random.Generator, groups: int = 20
) -> IntervalAtLevel:
    """Return the interval of ``measure(rows)`` by leaving out one random group of rows at a time.

    A single row has no measurable spread: the interval is then unbounded.
    """
    from scipy.special import stdtrit

    if n < 2:
        return lambda level: (-np.inf, np.inf)
    groups = min(groups, max(2, n // 2))
    group = rng.permutation(n) % groups
    without = np.array([measure(np.flatnonzero(group != g)) for g in range(groups)])
    if not np.isfinite(without).all():  # nothing is left to measure without some group
        return lambda level: (-np.inf, np.inf)
    spread = np.sqrt((groups - 1) / groups * np.sum((without - without.mean()) ** 2))
    value = measure(np.arange(n))

    def find_ends(level: float) -> tuple[float, float]:
        half = float(stdtrit(groups - 1, (1.0 + level) / 2.0) * spread)
        return value - half, value + half

    return find_ends


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
        gap[rows] = np.take_along_axis(D, find_smallest_places(D, k), axis=1).max(axis=1)
    count = max(1, round(n / 10))
    return np.sort(np.argsort(-gap, kind="stable")[:count])
