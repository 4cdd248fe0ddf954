from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erfc

from ppdm_core.miners._clean_distribution import (
    CleanDistribution,
    draw_records,
    fit_clean_distribution,
)
from ppdm_core.miners._noise_mixture import NoiseParts, fit_noise_parts
from ppdm_core.numerics.noise_distributions import find_distribution


@pytest.mark.parametrize(
    ("law", "nu", "near"),
    [
        ("laplace", None, 2e-4),
        ("logistic", None, 1e-4),
        ("student_t", 2.1, 5e-3),
        ("student_t", 5.0, 5e-4),
        ("student_t", 20.0, 5e-3),
        ("normal", None, 1e-12),
        ("uniform", None, 2e-2),
    ],
)
def test_fit_noise_parts_tails_and_variance_equal_distribution(
    law: str, nu: float | None, near: float
):
    distribution, parts = find_distribution(law, nu), fit_noise_parts(find_distribution(law, nu))
    x = np.linspace(0.0, 12.0, 500)[:, None]
    spread = np.sqrt(2.0 * parts.variance)
    tails = (erfc((x - parts.shift) / spread) + erfc((x + parts.shift) / spread)) / 2 @ parts.share
    assert np.abs(tails - distribution.tail_probability(x[:, 0])).max() < near
    assert parts.share @ (parts.variance + parts.shift**2) == pytest.approx(
        distribution.variance, rel=1e-3
    )
    assert parts.share.sum() == pytest.approx(1.0)


def test_fit_clean_distribution_one_part_known_solution():
    """The fitted variance is that of the rows minus the noise; records shrink to the mean."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(2000, 2)) @ np.diag([1.0, 2.0])
    noise = [NoiseParts(np.ones(1), np.zeros(1), np.array([v])) for v in (0.5, 1.0)]
    clean = fit_clean_distribution(Y, noise, 1, rng)
    assert np.allclose(clean.mean, Y.mean(axis=0), atol=1e-3)
    assert np.allclose(clean.variance, Y.var(axis=0) - [0.5, 1.0], rtol=0.02)
    fixed = CleanDistribution(np.ones(1), np.array([[1.0, 0.0]]), np.array([[1.0, 3.0]]))
    X = draw_records(np.tile([3.0, 4.0], (40_000, 1)), noise, fixed, rng)
    assert np.allclose(X.mean(axis=0), [1 + 2 / 1.5, 4 * 0.75], atol=0.02)
    assert np.allclose(X.var(axis=0), [1 / 3, 0.75], rtol=0.03)


def test_draw_records_shifted_noise_subtracted():
    """Two parts, 10 to either side: a row at 11 can only come from the upper one."""
    noise = [NoiseParts(np.array([0.5, 0.5]), np.array([-10.0, 10.0]), np.array([1.0, 1.0]))]
    fixed = CleanDistribution(np.ones(1), np.zeros((1, 1)), np.ones((1, 1)))
    X = draw_records(np.full((20_000, 1), 11.0), noise, fixed, np.random.default_rng(0))
    assert X.mean() == pytest.approx(0.5, abs=0.02)
    assert X.var() == pytest.approx(0.5, rel=0.04)
