from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erfc

from ppdm_core.miners._clean_distribution import CleanLaw, clean_law, likely_records
from ppdm_core.miners._noise_mixture import NoiseParts, noise_parts
from ppdm_core.numerics.distributions import law_named


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
def test_the_parts_of_a_law_have_its_tails_and_variance(law: str, nu: float | None, near: float):
    whole, parts = law_named(law, nu), noise_parts(law_named(law, nu))
    x = np.linspace(0.0, 12.0, 500)[:, None]
    spread = np.sqrt(2.0 * parts.variance)
    tails = (erfc((x - parts.shift) / spread) + erfc((x + parts.shift) / spread)) / 2 @ parts.share
    assert np.abs(tails - whole.beyond(x[:, 0])).max() < near
    assert parts.share @ (parts.variance + parts.shift**2) == pytest.approx(
        whole.variance, rel=1e-3
    )
    assert parts.share.sum() == pytest.approx(1.0)


def test_one_part_and_normal_noise_have_known_answers():
    """The likeliest variance is that of the rows less the noise's; records shrink to the mean."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(2000, 2)) @ np.diag([1.0, 2.0])
    noise = [NoiseParts(np.ones(1), np.zeros(1), np.array([v])) for v in (0.5, 1.0)]
    law = clean_law(Y, noise, 1, rng)
    assert np.allclose(law.mean, Y.mean(axis=0), atol=1e-3)
    assert np.allclose(law.variance, Y.var(axis=0) - [0.5, 1.0], rtol=0.02)
    fixed = CleanLaw(np.ones(1), np.array([[1.0, 0.0]]), np.array([[1.0, 3.0]]))
    X = likely_records(np.tile([3.0, 4.0], (40_000, 1)), noise, fixed, rng)
    assert np.allclose(X.mean(axis=0), [1 + 2 / 1.5, 4 * 0.75], atol=0.02)
    assert np.allclose(X.var(axis=0), [1 / 3, 0.75], rtol=0.03)


def test_a_shifted_part_of_the_noise_is_taken_off():
    """Two parts, 10 to either side: a row at 11 can only come from the upper one."""
    noise = [NoiseParts(np.array([0.5, 0.5]), np.array([-10.0, 10.0]), np.array([1.0, 1.0]))]
    fixed = CleanLaw(np.ones(1), np.zeros((1, 1)), np.ones((1, 1)))
    X = likely_records(np.full((20_000, 1), 11.0), noise, fixed, np.random.default_rng(0))
    assert X.mean() == pytest.approx(0.5, abs=0.02)
    assert X.var() == pytest.approx(0.5, rel=0.04)
