from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.metrics import METRICS
from ppdm_core.numerics.intervals import find_isolated_tenth, jackknife, wilson


@pytest.mark.parametrize(
    ("mean", "n", "low", "high"),
    [
        (0.0, 150, 0.0, 0.02497),  # z^2 / (n + z^2) = 3.8415 / 153.8415
        (1.0, 150, 1 - 0.02497, 1.0),
        (0.1, 10, 0.01788, 0.40415),
        (0.5, 100, 0.40383, 0.59617),
    ],
)
def test_wilson_golden_numbers(mean, n, low, high):
    assert wilson(mean, n, 0.95) == pytest.approx((low, high), abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(successes=st.integers(0, 40), extra=st.integers(0, 400), level=st.floats(0.5, 0.999))
def test_wilson_contains_rate_and_widens_with_level(successes, extra, level):
    n = successes + extra + 1
    low, high = wilson(successes / n, n, level)
    wider_low, wider_high = wilson(successes / n, n, (1 + level) / 2)
    assert 0 <= wider_low <= low <= successes / n <= high <= wider_high <= 1


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5])
def test_wilson_simulated_rate_is_covered(p):
    rng = np.random.default_rng(1)
    covered = [
        low <= p <= high
        for low, high in (wilson(x / 100, 100, 0.95) for x in rng.binomial(100, p, 1_000))
    ]
    assert 0.925 <= np.mean(covered) <= 0.985


def test_jackknife_mean_of_single_rows_is_t_interval():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 10.0])
    low, high = jackknife(lambda rows: x[rows].mean(), 8, 0.95, np.random.default_rng(0), groups=4)
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
        low, high = jackknife(lambda rows, x=x: x[rows].mean(), n, 0.95, rng)
        covered.append(low <= 3.0 <= high)
    assert 0.915 <= np.mean(covered) <= 0.985


def test_jackknife_interval_privacy_is_covered():
    rng = np.random.default_rng(3)
    metric = METRICS["interval_privacy"]
    truth, covered = 2 * 1.959964 / 10.0, []
    for _ in range(200):
        X = rng.normal(0.0, 1.0, (500, 1))

        def measure(rows, X=X):
            return metric.measure(X[rows], 0 * X[rows], np.array([10.0]), 0.1)

        low, high = jackknife(measure, 500, 0.95, rng)
        covered.append(low <= truth <= high)
    assert 0.88 <= np.mean(covered) <= 0.99


def test_jackknife_few_rows_contains_mean():
    x = np.array([1.0, 2.0, 4.0])
    for n in (2, 3):
        low, high = jackknife(lambda rows: x[rows].mean(), n, 0.95, np.random.default_rng(4))
        assert low < x[:n].mean() < high < np.inf
    assert jackknife(lambda rows: 1.0, 1, 0.95, np.random.default_rng(4)) == (-np.inf, np.inf)


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
