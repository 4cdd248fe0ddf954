from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers.randomized_response import estimate_frequencies
from tests.support.response_tables import COLOUR, released, table


def test_estimate_frequencies_equals_inverse_matrix():
    gamma, k = 4.0, 5
    M = (np.ones((k, k)) + np.eye(k) * (gamma - 1)) / (gamma + k - 1)
    counts = np.array([10, 20, 30, 25, 15])
    found, _ = estimate_frequencies(counts, gamma, k)
    assert np.allclose(found, np.linalg.solve(M.T, counts / 100), atol=1e-14)
    assert found.sum() == pytest.approx(1.0)


@settings(max_examples=30)
@given(gamma=st.floats(1.05, 50), k=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_estimate_frequencies_variance_is_unbiased(gamma: float, k: int, seed: int):
    """Compared with the exact value for known frequencies; the estimate is linear in counts."""
    n = 1000
    truth = np.random.default_rng(seed).dirichlet(np.ones(k))
    p, q = gamma / (gamma + k - 1), 1 / (gamma + k - 1)
    exact = (truth * p * (1 - p) + (1 - truth) * q * (1 - q)) / (n * (p - q) ** 2)
    expected_counts = n * (q + truth * (p - q))
    frequency, variance = estimate_frequencies(expected_counts, gamma, k)
    assert np.allclose(frequency, truth)
    assert np.allclose(variance, exact)
    assert np.all(estimate_frequencies(np.eye(k)[0] * n, gamma, k)[1] > 0)


def test_estimate_frequencies_spread_matches_variance():
    n, k, gamma = 500, 3, 2.0
    truth = np.repeat([0, 1, 2], [100, 150, 250])
    keys = [bytes([i]) * 32 for i in range(200)]
    draws = [released(table(truth[:, None], COLOUR), key, attribute=gamma)[:, 0] for key in keys]
    found = [estimate_frequencies(np.bincount(draw, minlength=k), gamma, k) for draw in draws]
    frequency, variance = (np.array(part) for part in zip(*found, strict=True))
    error = (frequency - np.bincount(truth) / n) / np.sqrt(variance)
    assert np.all(np.abs(error.mean(axis=0)) < 4 / math.sqrt(len(keys)))
    assert np.all(np.abs(error.std(axis=0) - 1) < 0.2)


@pytest.mark.parametrize(
    ("counts", "gamma", "k"), [([1, 2], 3, 3), ([0, 0], 3, 2), ([5], 3, 1), ([1, 2], 1.0, 2)]
)
def test_estimate_frequencies_invalid_counts_raise(counts: list[int], gamma: float, k: int):
    with pytest.raises(BadInput, match="a count for each of k cells"):
        estimate_frequencies(np.array(counts), gamma, k)
