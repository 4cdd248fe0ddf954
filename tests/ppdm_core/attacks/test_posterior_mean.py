from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks._noise_likelihood import KnownNoise, log_density
from ppdm_core.attacks._posterior_mean import KernelPrior, fit_weights, grid_posterior
from ppdm_core.attacks.shrinkage import shrink_components
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS, find_distribution


def find_law(name: str):
    return find_distribution(name, 3.0 if name == "student_t" else None)


@pytest.mark.parametrize("name", SAMPLED_DISTRIBUTIONS)
def test_log_density_each_distribution_matches_tail_probability(name):
    # P(|noise| > x) falls by 2 f(x): quotients of densities from the tail probability.
    law, x, step = find_law(name), np.array([0.2, 0.5, 0.8]), 1e-5
    density = (law.tail_probability(x - step) - law.tail_probability(x + step)) / (4 * step)
    got = np.exp(log_density(law, x))
    np.testing.assert_allclose(got[1:] / got[0], density[1:] / density[0], rtol=1e-5)


@pytest.mark.parametrize("name", SAMPLED_DISTRIBUTIONS)
def test_log_likelihoods_several_components_sum_of_densities(name):
    rng = np.random.default_rng(11)
    Z, T, scales = rng.normal(0, 0.3, (7, 11)), rng.normal(0, 0.3, (5, 11)), np.full(11, 0.4)
    noise = KnownNoise(find_law(name), scales)
    got = np.concatenate([part for _, part in noise.log_likelihoods(Z, T)])
    expected = [[log_density(noise.distribution, (z - t) / scales).sum() for t in T] for z in Z]
    np.testing.assert_allclose(got, expected, atol=1e-10)


def test_kernel_prior_two_support_records_expected_mean():
    # Laplace, b = 1: z = 0 weighs the records 0 and 2 as 1 : e^-2, z = 1 as 1 : 1.
    T = np.array([[0.0], [2.0]])
    mixture = KernelPrior(
        T, np.array([[10.0], [20.0]]), KnownNoise(find_distribution("laplace"), np.ones(1))
    )
    far = np.exp(-2.0)
    expected = [[(10 + 20 * far) / (1 + far)], [15.0]]
    np.testing.assert_allclose(mixture.posterior_mean(np.array([[0.0], [1.0]])), expected)


def test_fit_weights_two_separate_groups_expected_shares():
    F = np.repeat(np.eye(2), [30, 10], axis=0)
    np.testing.assert_allclose(fit_weights(F), [0.75, 0.25], atol=1e-9)


@pytest.mark.parametrize("name", SAMPLED_DISTRIBUTIONS)
def test_grid_posterior_two_values_beats_linear_shrinkage(name):
    """Every value is 0 or 1; the linear estimate is limited by the noise, this one is not."""
    rng = np.random.default_rng(14)
    t = rng.integers(0, 2, 600).astype(float)
    law, b = find_law(name), 0.25
    u = rng.uniform(0, 1, 600)
    grid = np.linspace(0, 60, 60_001)
    size = np.interp(-u, -law.tail_probability(grid), grid)  # by inversion of the tail probability
    z = t + b * size * rng.choice([-1.0, 1.0], 600)
    got = grid_posterior(z, 0.0, 1.0, KnownNoise(law, np.array([b])))(z)
    linear = shrink_components(z[:, None], np.array([law.variance * b**2]))(z[:, None])[:, 0]
    assert np.mean((got - t) ** 2) < 0.85 * np.mean((linear - t) ** 2)
    assert got.min() >= 0.0
    assert got.max() <= 1.0
