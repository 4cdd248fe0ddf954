from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppdm_core.numerics.noise_distributions import (
    LAPLACE,
    SAMPLED_DISTRIBUTIONS,
    Logistic,
    NoiseDistribution,
    Normal,
    StudentT,
    Uniform,
    find_distribution,
)

# Log densities of scipy. Laplace's is written out: a library may compute log(pdf), which is -inf
# in the tails.
DENSITIES = [
    (LAPLACE, lambda x: -np.abs(x)),
    (Logistic(), stats.logistic.logpdf),
    (StudentT(1.0), stats.cauchy.logpdf),
    (StudentT(1.5), stats.t(1.5).logpdf),
    (StudentT(3.0), stats.t(3).logpdf),
    (StudentT(20.0), stats.t(20).logpdf),
]
each_density = pytest.mark.parametrize(
    ("distribution", "log_density"),
    DENSITIES,
    ids=[str(distribution) for distribution, _ in DENSITIES],
)
LIBRARY = {
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "student_t": stats.t(4.5),
    "normal": stats.norm,
    "uniform": stats.uniform(-1, 2),
}


def make_distribution(name: str) -> NoiseDistribution:
    return find_distribution(name, 4.5 if name == "student_t" else None)


@each_density
@pytest.mark.parametrize("distance", [0.01, 0.7, 3.0, 40.0])
def test_ln_gamma_closed_form_is_supremum(distribution: NoiseDistribution, log_density, distance):
    far = np.geomspace(1e-4, 1e4, 40_001)
    y = np.concatenate([-far, [0.0], far])
    seen = float(np.max(np.abs(log_density(y) - log_density(y + distance))))
    bound = float(distribution.ln_gamma(np.array(distance)))
    assert distribution.is_bounded
    assert seen <= bound * (1 + 1e-9)
    assert seen >= bound * 0.995


def test_ln_gamma_student_t_worst_output_matches_formula():
    nu, tau, R = 3.0, 0.4, 1.7
    r = R / (tau * math.sqrt(nu))
    u = -r / 2 + math.sqrt(r * r / 4 + 1)  # u (u + r) = 1
    y = u * tau * math.sqrt(nu)
    distribution = stats.t(nu, scale=tau)
    expected = float(StudentT(nu).ln_gamma(np.array(R / tau)))
    assert distribution.logpdf(y) - distribution.logpdf(y + R) == pytest.approx(expected)


def test_ln_gamma_student_t_diverges_towards_normal():
    grown = [float(StudentT(nu).ln_gamma(np.array(2.0))) for nu in (1, 10, 1e3, 1e6)]
    assert grown == sorted(grown)
    assert grown[-1] == pytest.approx(1e3, rel=0.01)  # R sqrt(nu) / (2 tau)


@pytest.mark.parametrize("distribution", [Normal(), Uniform()], ids=str)
def test_ln_gamma_unbounded_distribution_is_infinite_with_reason(distribution):
    bound = float(distribution.ln_gamma(np.array(0.001)))
    assert not distribution.is_bounded
    assert bound == math.inf
    assert "no worst-case bound" in distribution.unbounded_reason


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([distribution for distribution, _ in DENSITIES]),
    st.lists(st.floats(0, 100), min_size=2),
)
def test_ln_gamma_is_concave(distribution, distances):
    each = distribution.ln_gamma(np.array(distances))
    of_mean = float(distribution.ln_gamma(np.array(np.mean(distances))))
    assert np.sum(each) <= len(distances) * of_mean * (1 + 1e-9) + 1e-12
    order = np.argsort(distances)
    assert np.all(np.diff(each[order]) >= 0)


@pytest.mark.parametrize("name", SAMPLED_DISTRIBUTIONS)
def test_tails_and_moments_match_scipy(name):
    distribution, other = make_distribution(name), LIBRARY[name]
    x = np.concatenate([np.linspace(0.0, 0.99, 50), [1.5, 4.0, 11.0]])
    np.testing.assert_allclose(distribution.tail_probability(x), 2 * other.sf(x), rtol=1e-12)
    assert distribution.variance == pytest.approx(float(other.var()))
    excess = float(other.stats(moments="k"))
    assert distribution.fourth_moment == pytest.approx((excess + 3) * distribution.variance**2)
    assert distribution.name == name


def test_moments_that_do_not_exist_are_infinite():
    assert StudentT(2.0).variance == math.inf
    assert StudentT(2.5).variance == pytest.approx(5.0)
    assert StudentT(4.0).fourth_moment == math.inf
