from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from ppdm_core.numerics.intervals import (
    clopper_pearson,
    find_isolated_tenth,
    find_quantile_ranks,
    jackknife,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 150, 0.0, 1 - 0.025 ** (1 / 150)),  # (1 - p)^150 = 0.025
        (150, 150, 0.025 ** (1 / 150), 1.0),
        (1, 10, 0.00253, 0.44502),  # tables of Clopper and Pearson
        (50, 100, 0.39832, 0.60168),
    ],
)
def test_clopper_pearson_golden_numbers(successes, n, low, high):
    assert clopper_pearson(successes, n, 0.95) == pytest.approx((low, high), abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(successes=st.integers(0, 40), extra=st.integers(0, 400), level=st.floats(0.5, 0.999))
def test_clopper_pearson_contains_rate_and_widens_with_level(successes, extra, level):
    n = successes + extra + 1
    low, high = clopper_pearson(successes, n, level)
    wider_low, wider_high = clopper_pearson(successes, n, (1 + level) / 2)
    assert 0 <= wider_low <= low <= successes / n <= high <= wider_high <= 1


@pytest.mark.parametrize("level", [0.95, 0.995])
@pytest.mark.parametrize("n", [20, 50, 200, 2_000])
def test_clopper_pearson_neither_end_misses_more_than_stated(n, level):
    """At n = 50 and a rate of 0.01, Wilson's lower end is too high in 8.9 % of all samples."""
    counts = np.arange(n + 1)
    low, high = np.array([clopper_pearson(each, n, level) for each in counts]).T
    for rate in np.concatenate([[0.0, 1e-4, 1e-3], np.linspace(0.005, 0.5, 100)]):
        chance = binom.pmf(counts, n, rate)
        for is_missed in (low > rate + 1e-12, high < rate - 1e-12):
            assert chance @ is_missed <= (1 - level) / 2 + 1e-12


@pytest.mark.parametrize("n", [5, 20, 200, 1_000])
@pytest.mark.parametrize("tail", [0.025, 0.0005])
def test_find_quantile_ranks_neither_end_misses_more_than_stated(n, tail):
    below, above = find_quantile_ranks(n, 0.975, tail)
    at_most = np.arange(n + 1)  # so many values are at most the quantile
    chance = binom.pmf(at_most, n, 0.975)
    assert chance @ (at_most < below) <= tail  # then the value of this rank is above it
    assert chance @ (at_most >= above) <= tail
    assert chance @ (at_most < below + 1) > tail and chance @ (at_most >= above - 1) > tail


def test_find_quantile_ranks_few_values_no_upper_end():
    assert find_quantile_ranks(20, 0.975, 0.025)[1] == 21
    assert find_quantile_ranks(146, 0.975, 0.025)[1] == 146  # 0.975^146 = 0.0248


def test_jackknife_mean_of_single_rows_is_t_interval():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 10.0])
    low, high = jackknife(lambda rows: x[rows].mean(), 8, np.random.default_rng(0), groups=4)(0.95)
    assert (low + high) / 2 == pytest.approx(5.0)
    # Four groups of two: mean +- t_3 sd(group means) / 2 for the groups that were drawn.
    group = np.random.default_rng(0).permutation(8) % 4
    means = np.array([x[group == g].mean() for g in range(4)])
    assert (high - low) / 2 == pytest.approx(3.18245 * means.std(ddof=1) / 2, rel=1e-5)


@pytest.mark.parametrize("n", [7, 100])
def test_jackknife_simulated_mean_is_covered(n):
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(500):
        x = rng.normal(3.0, 1.0, n)
        low, high = jackknife(lambda rows, x=x: x[rows].mean(), n, rng)(0.95)
        covered.append(low <= 3.0 <= high)
    assert 0.915 <= np.mean(covered) <= 0.985


def test_jackknife_few_rows_contains_mean():
    x = np.array([1.0, 2.0, 4.0])
    for n in (2, 3):
        low, high = jackknife(lambda rows: x[rows].mean(), n, np.random.default_rng(4))(0.95)
        assert low < x[:n].mean() < high < np.inf
    single = jackknife(lambda rows: 1.0, 1, np.random.default_rng(4))
    assert single(0.95) == (-np.inf, np.inf)


@pytest.mark.parametrize("n", [40, 6_000])
def test_find_isolated_tenth_returns_isolated_records(n):
    rng = np.random.default_rng(5)
    X = rng.normal(0.0, 1.0, (n, 3))
    lonely = rng.choice(n, size=n // 10, replace=False)
    X[lonely] *= 100.0
    np.testing.assert_array_equal(find_isolated_tenth(X, rng), np.sort(lonely))


def test_find_isolated_tenth_record_is_not_its_own_neighbour():
    # A group of six records and a group of five: the latter have no fifth neighbour nearby.
    X = np.array([[0.0]] * 6 + [[100.0]] * 5)
    assert find_isolated_tenth(X, np.random.default_rng(0))[0] >= 6
    assert find_isolated_tenth(np.zeros((1, 2)), np.random.default_rng(0)).tolist() == [0]
    assert len(find_isolated_tenth(np.arange(4.0)[:, None], np.random.default_rng(0))) == 1
