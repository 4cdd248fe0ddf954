"""Limits of means: equal to Clopper and Pearson's, and their coverage by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, multinomial, norm

from ppdm_core.numerics.intervals import clopper_pearson
from ppdm_core.numerics.mean_limits import (
    MAX_VALUES,
    RandomMean,
    difference_interval,
    mean_interval,
    spread_over_grid,
)
from tests.support.slow_cases import mark_exhaustive

RATES = np.array([0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
SHARES = np.concatenate([RATES, 1 - RATES[:-1]])
TAILS = (0.025, 0.0025)  # one limit, and ten
ROUNDING = 1e-7


def make_values(n: int, successes: int) -> np.ndarray:
    return np.repeat([1.0, 0.0], [successes, n - successes])


@pytest.mark.parametrize(("n", "successes"), [(1, 0), (1, 1), (20, 0), (20, 3), (500, 5), (9, 9)])
def test_mean_interval_zeros_and_ones_equals_clopper_pearson(n, successes):
    expected = clopper_pearson(successes, n, 0.95)
    assert mean_interval(make_values(n, successes), 0.95) == pytest.approx(expected, abs=1e-12)
    # The general computation, without the beta distribution that two values have.
    slightly = make_values(n, successes) * 0.999999 + 1e-6 * np.linspace(0, 1, n) * (n > 1)
    assert mean_interval(slightly, 0.95) == pytest.approx(expected, abs=1e-4)


def test_mean_interval_equals_simulated_quantiles():
    rng = np.random.default_rng(1)
    values = np.round(rng.beta(0.5, 3.0, 40), 1)
    weights = rng.standard_exponential((200_000, 41))
    weights /= weights.sum(axis=1, keepdims=True)
    low, high = (weights @ np.append(values, extra) for extra in (0.0, 1.0))
    expected = np.quantile(low, 0.025), np.quantile(high, 0.975)
    assert mean_interval(values, 0.95) == pytest.approx(expected, abs=1e-3)


@pytest.mark.extended
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30),
    st.floats(0.5, 0.999),
    st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.0, 7.0)]),
)
def test_mean_interval_contains_mean_and_widens_with_level(values, level, bounds):
    values = np.array(values)
    low, high = mean_interval(values, level, bounds)
    wider_low, wider_high = mean_interval(values, (1 + level) / 2, bounds)
    assert bounds[0] <= low <= values.mean() + 1e-9 and values.mean() - 1e-9 <= high <= bounds[1]
    assert wider_low <= low + 1e-6 and high <= wider_high + 1e-6


def test_mean_interval_equal_values_narrower_than_rate():
    """Of everyone one column of two is inferred: surer than both columns of every other person."""
    every, half = (mean_interval(each, 0.95) for each in (np.full(200, 0.5), make_values(200, 100)))
    assert half[0] < every[0] < 0.5 < every[1] < half[1]
    assert np.diff(every)[0] < np.diff(half)[0] / 3


def test_mean_interval_counts_of_a_half_as_half_of_the_records():
    values = make_values(40, 8)
    assert mean_interval(values, 0.95, counts=np.full(40, 0.5)) == pytest.approx(
        clopper_pearson(4, 20, 0.95)
    )


def test_spread_over_grid_keeps_mean_and_widens():
    values = np.random.default_rng(2).beta(2.0, 5.0, 300)
    grid, counts = spread_over_grid(values, np.ones(300))
    assert len(grid) == MAX_VALUES and counts.sum() == pytest.approx(300)
    assert grid @ counts / 300 == pytest.approx(values.mean())
    spread = grid**2 @ counts / 300 - values.mean() ** 2
    assert values.var() < spread < 1.01 * values.var()


def find_miss_rates(n: int, low: float, high: float, tail: float) -> np.ndarray:
    """Return how often the upper limit is too low if a share of the records has the high value."""
    means = low + (high - low) * SHARES
    z = norm.isf(tail)
    missed = np.zeros(len(SHARES))
    for count in range(n + 1):
        values = np.repeat([low, high], [n - count, count])
        limit = RandomMean.from_records(values, np.ones(n), 1.0)
        inside = (means > values.min()) & (means < 1.0)
        is_missed = means >= 1.0 if limit.is_constant else np.zeros(len(means), dtype=np.bool_)
        if inside.any() and not limit.is_constant:
            is_missed[inside] = limit.compute_scores(means[inside]) > z + ROUNDING
        if not is_missed.any():  # more records with the high value only raise the limit
            break
        missed += is_missed * binom.pmf(count, n, SHARES)
    return missed


PAIRS = ((0.0, 1.0), (0.0, 0.5), (0.0, 0.1), (0.3, 1.0), (0.05, 0.4), (0.01, 0.9))


@pytest.mark.extended
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("n", [1, 2, 5, 20, 60])
def test_mean_limit_two_values_never_misses_more_than_stated(n, tail):
    for low, high in PAIRS:
        assert find_miss_rates(n, low, high, tail).max() <= tail * (1 + 1e-6), (low, high)


@pytest.mark.slow
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize(
    "n",
    mark_exhaustive([20, 50, 100, 300, 500, 1_000, 2_000], slow=[20, 100, 300]),
)
def test_mean_limit_two_values_wide_never_misses_more_than_stated(n, tail):
    for low, high in itertools.product((0.0, 0.01, 0.05, 0.3, 0.8), (0.1, 1 / 3, 0.5, 0.9, 1.0)):
        if low < high:
            assert find_miss_rates(n, low, high, tail).max() <= tail * (1 + 1e-6), (low, high)


@pytest.mark.parametrize("n", [3, 14])
def test_mean_limit_three_values_never_misses_more_than_stated(n):
    """Two draws of each record, with any dependence between them: 0, one half or 1."""
    shares = [
        (one, both)
        for one in (0.0, 0.02, 0.1, 0.3, 0.6)
        for both in (0.0, 0.005, 0.05, 0.2, 0.4)
        if one + both > 0
    ]
    p = np.array([(1 - one - both, one, both) for one, both in shares])
    means = p @ [0.0, 0.5, 1.0]
    missed = np.zeros((len(TAILS), len(p)))
    for both in range(n + 1):
        for one in range(n + 1 - both):
            limit = RandomMean.from_records(
                np.repeat([0.0, 0.5, 1.0], [n - one - both, one, both]), np.ones(n), 1.0
            )
            if limit.is_constant:
                continue
            score = np.full(len(p), -np.inf)
            inside = means > limit.values[0]
            score[inside] = limit.compute_scores(means[inside])
            chance = multinomial.pmf([n - one - both, one, both], n, p)
            missed += chance * (score > norm.isf(TAILS)[:, None] + ROUNDING)
    assert np.all(missed <= np.array(TAILS)[:, None] * (1 + 1e-6))


def find_difference_misses(n: int, m: int, level: float, rates: np.ndarray) -> np.ndarray:
    """Return how often each end of the difference of two rates misses, (2, rates, rates)."""
    ends = np.array(
        [
            [difference_interval(make_values(n, s), make_values(m, r), level) for r in range(m + 1)]
            for s in range(n + 1)
        ]
    )
    one, other = (binom.pmf(np.arange(k + 1)[:, None], k, rates) for k in (n, m))  # (k + 1, rates)
    missed = np.zeros((2, len(rates), len(rates)))
    for (i, p), (j, q) in itertools.product(enumerate(rates), repeat=2):
        is_missed = ends[..., 0] > p - q + 1e-5, ends[..., 1] < p - q - 1e-5
        missed[:, i, j] = [one[:, i] @ each @ other[:, j] for each in is_missed]
    return missed


GRID = np.array([0.0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.98, 1.0])


@pytest.mark.parametrize(("n", "m"), [(7, 7), (12, 4)])
def test_difference_interval_never_misses_more_than_stated(n, m):
    assert find_difference_misses(n, m, 0.95, GRID).max() <= 0.025


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.95, 0.995])
@pytest.mark.parametrize(("n", "m"), [(20, 20), (50, 50), (50, 20), (20, 80)])
def test_difference_interval_wide_never_misses_more_than_stated(n, m, level):
    assert find_difference_misses(n, m, level, GRID).max() <= (1 - level) / 2


@pytest.mark.parametrize(
    ("n", "s", "m", "r"), [(20, 2, 20, 2), (100, 10, 50, 3), (300, 1, 300, 1), (5, 5, 30, 2)]
)
def test_difference_interval_equals_simulated_quantiles(n, s, m, r):
    rng, size = np.random.default_rng(3), 400_000

    def draw(successes: int, failures: int) -> np.ndarray | float:
        if min(successes, failures) == 0:
            return float(successes > 0)
        return rng.beta(successes, failures, size)

    low = np.quantile(draw(s, n - s + 1) - draw(r + 1, m - r), 0.025)
    high = np.quantile(draw(s + 1, n - s) - draw(r, m - r + 1), 0.975)
    found = difference_interval(make_values(n, s), make_values(m, r), 0.95)
    assert found == pytest.approx((low, high), abs=2e-3)


def test_difference_interval_slightly_wider_than_newcombe():
    """Newcombe (1998), method 10, 56/70 against 48/80: 0.0524 to 0.3339; it misses too often."""
    low, high = difference_interval(make_values(70, 56), make_values(80, 48), 0.95)
    assert 0.03 < low < 0.0524 and 0.3339 < high < 0.35


def test_difference_interval_swapped_groups_mirrored():
    rng = np.random.default_rng(4)
    one, other = rng.integers(0, 6, 50) / 5, rng.integers(0, 3, 80) / 2
    low, high = difference_interval(one, other, 0.95)
    assert difference_interval(other, one, 0.95) == pytest.approx((-high, -low), abs=1e-6)
