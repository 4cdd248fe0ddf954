"""Confidence limits of the mean of bounded values: Clopper and Pearson's, also between 0 and 1.

An upper limit is a quantile of the mean with random weights, after one more record with the
largest possible value was added; a lower limit, after one with the smallest possible value.
The weights are those of a Dirichlet distribution. For values of 0 and 1 the limits are those of
Clopper and Pearson, which never miss more often than stated. For values in between they are
narrower if the values differ less. No proof of their coverage is known, and no counterexample;
tests enumerate it.

References: Clopper, Pearson (1934); Gaffke (2005), "Three test statistics for a nonparametric
one-sided hypothesis on the mean of a nonnegative variable"; Learned-Miller, Thomas (2019), "A new
confidence interval for the mean of a bounded random variable".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppdm_core.model.arrays import Floats

MAX_VALUES = 65  # different values; more are spread over a grid, which widens the limits slightly
_MAX_SCORE = 6.0  # normal scores beyond it do not matter
_POINTS_PER_SCORE = 4  # of tables in which quantiles are interpolated
_CONTOUR = np.arange(0.0, 8.0, 0.15)  # the integrand is smooth and falls quickly


@dataclass(frozen=True, eq=False)
class RandomMean:
    """The mean of values with weights from a Dirichlet distribution, as a random variable."""

    values: Floats  # (k,) ascending
    counts: Floats  # (k,) how many records have each value, also parts of a record

    @classmethod
    def from_records(cls, values: Floats, counts: Floats, extra: float) -> RandomMean:
        """Make the distribution for these records and one more with the value ``extra``."""
        if len(np.unique(values)) > MAX_VALUES:
            values, counts = spread_over_grid(values, counts)
        found, which = np.unique(np.append(values, extra), return_inverse=True)
        total = np.zeros(len(found))
        np.add.at(total, which.ravel(), np.append(counts, 1.0))
        return cls(found[total > 0], total[total > 0])

    @property
    def is_constant(self) -> bool:
        return len(self.values) == 1

    @cached_property
    def places(self) -> Floats:
        """(k,) where the values lie between the least, 0, and the largest, 1."""
        return np.asarray((self.values - self.values[0]) / (self.values[-1] - self.values[0]))

    def compute_scores(self, means: Floats) -> Floats:
        """Return the normal score of the probability of at most each mean, inside the range."""
        return self._score_places((means - self.values[0]) / (self.values[-1] - self.values[0]))

    def find_quantiles(self, scores: Floats) -> Floats:
        """Return the quantiles with these normal scores."""
        from scipy.interpolate import PchipInterpolator
        from scipy.special import betaincinv, ndtr

        if self.is_constant:
            return np.full(len(scores), self.values[0])
        if len(self.values) == 2:
            found = betaincinv(self.counts[1], self.counts[0], ndtr(scores))
        else:
            places, table = self._tabulate(float(scores.min()) - 1.0, float(scores.max()) + 1.0)
            is_new = np.append(True, np.diff(table) > 0)
            inside = np.clip(scores, table[0], table[-1])
            found = PchipInterpolator(table[is_new], places[is_new])(inside)
        return np.asarray(self.values[0] + (self.values[-1] - self.values[0]) * found)

    def find_quantile(self, score: float) -> float:
        """Return the quantile with this normal score."""
        return float(self.find_quantiles(np.array([score]))[0])

    def _tabulate(self, lowest: float, highest: float) -> tuple[Floats, Floats]:
        """Return places with scores in this range, and the score of each.

        A score is almost linear in the angle whose squared sine is the place.
        """
        points = int(_POINTS_PER_SCORE * (highest - lowest)) + 1
        first, last = 1e-6, np.pi / 2 - 1e-6
        for _ in range(3):  # narrow the range by an approximation
            angle = np.linspace(first, last, points)
            factor, at = self._find_saddle_points(np.sin(angle) ** 2)
            least = np.log1p(-factor * at[:, None]) @ self.counts
            score = np.sign(at) * np.sqrt(2.0 * np.maximum(least, 0.0))
            first = float(angle[max(int(np.searchsorted(score, lowest)) - 1, 0)])
            last = float(angle[min(int(np.searchsorted(score, highest)), points - 1)])
        places = np.sin(np.linspace(first, last, points)) ** 2
        return places, np.maximum.accumulate(self._score_places(places))

    def _score_places(self, places: Floats) -> Floats:
        """Return the normal score of the probability of at most each place.

        The mean is at most m if a sum of independent gamma variables, with the factors (value - m),
        is at most 0. Its distribution is an integral of the moment-generating function along a
        line through the saddle point, which gives the smaller tail without cancellation.
        """
        from scipy.special import betainc, betaincc, ndtri

        if len(self.values) == 2:
            shape = self.counts[1], self.counts[0]
            below, above = betainc(*shape, places), betaincc(*shape, places)
            return np.asarray(np.where(below < above, ndtri(below), -ndtri(above)))
        factor, at = self._find_saddle_points(places)
        ratio = factor / (1.0 - factor * at[:, None])
        scale = 1.0 / np.sqrt(ratio**2 @ self.counts)
        # The line must not touch the pole at 0.
        at = np.where(np.abs(at) < 0.3 * scale, np.minimum(scale, 1.0 / factor[:, -1]) / 2.0, at)
        z = at[:, None] + 1j * scale[:, None] * np.sinh(_CONTOUR)  # (m, c)
        log_grown = np.zeros_like(z)
        for j, count in enumerate(self.counts.tolist()):
            log_grown -= count * np.log(1.0 - factor[:, j, None] * z)
        weight = np.cosh(_CONTOUR) * (_CONTOUR[1] - _CONTOUR[0]) / np.pi
        weight[0] /= 2.0
        tail = scale * ((np.exp(log_grown) / z).real @ weight)
        score = ndtri(np.clip(np.abs(tail), 1e-300, 1.0 - 1e-16))
        return np.asarray(np.where(at > 0, -score, score))

    def _find_saddle_points(self, places: Floats) -> tuple[Floats, Floats]:
        """Return the factors of each place, scaled, (m, k), and its saddle point, (m,)."""
        factor = self.places - places[:, None]
        factor /= np.sqrt(factor**2 @ self.counts)[:, None]
        return factor, find_saddle_points(factor, self.counts)


def find_saddle_points(factor: Floats, counts: Floats) -> Floats:
    """Return where the logarithms of the moment-generating functions are smallest; (m,).

    The slope is multiplied by the distances from its two poles, which makes it almost linear, and
    its root is found by Newton's steps.
    """
    poles = 1.0 / factor[:, 0], 1.0 / factor[:, -1]
    (low, high), at = poles, np.zeros(len(factor))
    for _ in range(60):
        ratio = factor / (1.0 - factor * at[:, None])
        slope, curvature = ratio @ counts, ratio**2 @ counts
        weight = (at - poles[0]) * (poles[1] - at)
        low, high = np.where(slope > 0, low, at), np.where(slope > 0, at, high)
        new = at - slope * weight / (curvature * weight + slope * (sum(poles) - 2.0 * at))
        new = np.where((low < new) & (new < high), new, (low + high) / 2.0)
        if np.all(np.abs(new - at) <= 1e-7 * (np.abs(at) + np.sqrt(1.0 / curvature))):
            return new
        at = new
    return at


def spread_over_grid(values: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Divide each record between the two nearest points of a grid, so that its mean stays."""
    grid = np.linspace(values.min(), values.max(), MAX_VALUES)
    place = (values - grid[0]) / (grid[1] - grid[0])
    left = np.minimum(place.astype(np.int64), MAX_VALUES - 2)
    share = np.clip(place - left, 0.0, 1.0)
    total = np.zeros(MAX_VALUES)
    np.add.at(total, left, counts * (1.0 - share))
    np.add.at(total, left + 1, counts * share)
    return grid, total


def mean_interval(
    values: Floats,
    level: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    counts: Floats | None = None,
) -> tuple[float, float]:
    """Return the interval of the mean of independent values within the bounds.

    ``counts``: how many independent records each value stands for, 1 if not given.
    """
    from scipy.special import ndtri

    counts = np.ones(len(values)) if counts is None else counts
    score = float(ndtri((1.0 - level) / 2.0))
    low, high = (RandomMean.from_records(values, counts, extra) for extra in bounds)
    return low.find_quantile(score), high.find_quantile(-score)


def difference_interval(one: Floats, other: Floats, level: float) -> tuple[float, float]:
    """Return the interval of the difference of two means of values from 0 to 1.

    An end is the quantile of the difference between the random means behind the limits of both.
    """
    from scipy.special import ndtri

    score = float(ndtri((1.0 - level) / 2.0))
    lows = [RandomMean.from_records(each, np.ones(len(each)), 0.0) for each in (one, other)]
    highs = [RandomMean.from_records(each, np.ones(len(each)), 1.0) for each in (one, other)]
    return -_quantile_of_difference(highs[1], lows[0], -score), _quantile_of_difference(
        highs[0], lows[1], -score
    )


def _quantile_of_difference(one: RandomMean, other: RandomMean, score: float) -> float:
    """Return the quantile, with this normal score, of the difference of two independent means."""
    from scipy.interpolate import PchipInterpolator
    from scipy.optimize import brentq
    from scipy.special import ndtr

    if other.is_constant:
        return one.find_quantile(score) - float(other.values[0])
    if one.is_constant:
        return float(one.values[0]) - other.find_quantile(-score)
    nodes = np.linspace(-_MAX_SCORE, _MAX_SCORE, 121)
    weight = np.exp(-(nodes**2) / 2.0)
    weight /= weight.sum()
    means, others = one.find_quantiles(nodes), other.find_quantiles(nodes)
    scores = PchipInterpolator(means, nodes)

    def excess(t: float) -> float:
        x = np.clip(t + others, means[0], means[-1])
        return float(weight @ ndtr(scores(x))) - float(ndtr(score))

    return float(brentq(excess, means[0] - others[-1], means[-1] - others[0], xtol=1e-9))
