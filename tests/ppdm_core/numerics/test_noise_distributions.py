from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from ppdm_core.numerics.amplification import (
    Amplification,
    LogDensity,
    allowed_ln_gamma,
    amplification,
    posterior_bound,
    posterior_floor,
)
from ppdm_core.numerics.noise_distributions import (
    LAPLACE,
    SAMPLED_DISTRIBUTIONS,
    GeneralisedNormal,
    Logistic,
    NoiseDistribution,
    Normal,
    SampledDistribution,
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
    (GeneralisedNormal(1.0), stats.gennorm(1.0).logpdf),
    (GeneralisedNormal(0.5), stats.gennorm(0.5).logpdf),
    (GeneralisedNormal(0.2), stats.gennorm(0.2).logpdf),
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


def make_distribution(name: str) -> SampledDistribution:
    return find_distribution(name, 4.5 if name == "student_t" else None)


@each_density
@pytest.mark.parametrize("distance", [0.01, 0.7, 3.0, 40.0])
def test_ln_gamma_closed_form_is_supremum(distribution: NoiseDistribution, log_density, distance):
    far = np.geomspace(1e-4, 1e4, 40_001)
    y = np.concatenate([-far, [0.0], far])
    seen = float(np.max(np.abs(log_density(y) - log_density(y + distance))))
    bound = amplification(distribution, distance)
    assert bound.is_bounded
    assert seen <= bound.ln_gamma * (1 + 1e-9)
    assert seen >= bound.ln_gamma * 0.995


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


@pytest.mark.parametrize("distribution", [Normal(), Uniform(), GeneralisedNormal(1.01)], ids=str)
def test_amplification_unbounded_distribution_is_infinite_with_reason(distribution):
    bound = amplification(distribution, 0.001)
    assert not bound.is_bounded
    assert bound.ln_gamma == math.inf
    assert bound.why == distribution.unbounded_reason != ""
    assert posterior_bound(bound.ln_gamma, 0.001) == 1.0


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


def cauchy(x):
    return -np.log1p(x**2)


def test_amplification_log_density_without_claims_is_unbounded():
    for claims in ({}, {"slope": 1.0}, {"spread": 1.0}):
        bound = amplification(LogDensity(cauchy, radius=1.0, **claims), 1.0)
        assert not bound.is_bounded
        assert "Not shown bounded" in bound.why


def test_amplification_valid_claims_give_bound():
    # Cauchy: |(ln f)'| <= 1 everywhere, and ln f falls by ln 2 up to 1.
    bound = amplification(LogDensity(cauchy, 1.0, slope=1.0, spread=math.log(2)), 3.0)
    assert bound == Amplification(3.0 + math.log(2), "claimed slope and spread")
    assert bound.ln_gamma >= float(StudentT(1.0).ln_gamma(np.array(3.0)))


@settings(max_examples=50, deadline=None)
@given(st.floats(0.1, 20.0), st.floats(0.05, 5.0))
def test_amplification_claimed_bound_at_least_closed_form(distance, radius):
    slope = 2 * radius / (1 + radius**2) if radius >= 1 else 1.0
    distribution = LogDensity(cauchy, radius, slope=slope, spread=math.log1p(radius**2))
    bound = amplification(distribution, distance).ln_gamma
    assert math.isfinite(bound)
    assert bound >= float(StudentT(1.0).ln_gamma(np.array(distance)))


def pole(x):  # E4: meets the three conditions of theorem 4, and has no bound
    return -np.log(np.abs(x)) / 2 - np.abs(x)


@pytest.mark.parametrize(
    ("log_density", "claims"),
    [
        (cauchy, {"slope": 0.5, "spread": math.log(2)}),
        (cauchy, {"slope": 1.0, "spread": 0.5}),
        (cauchy, {"slope": math.inf, "spread": 1.0}),
        (cauchy, {"slope": 1.0, "spread": math.nan}),
        (pole, {"slope": 1.5, "spread": 100.0}),
        (stats.norm.logpdf, {"slope": 10.0, "spread": 1.0}),
        (stats.uniform(-1, 2).logpdf, {"slope": 1.0, "spread": 1.0}),
    ],
)
def test_amplification_refuted_claims_are_unbounded(log_density, claims):
    bound = amplification(LogDensity(log_density, radius=1.0, **claims), 1.0)
    assert not bound.is_bounded
    assert "breaks its claimed bounds" in bound.why


def test_amplification_density_with_pole_is_unbounded():
    mass, _ = integrate.quad(lambda x: 2 * math.exp(pole(x)), 0, math.inf)
    assert mass == pytest.approx(2 * math.sqrt(math.pi))
    ratios = [pole(y) - pole(y + 1) for y in (1e-3, 1e-30, 1e-300)]
    assert ratios == sorted(ratios)
    assert ratios[-1] > 300


@settings(deadline=None)
@given(st.floats(1e-6, 0.9), st.floats(1e-6, 0.09))
def test_allowed_ln_gamma_prior_and_posterior(prior, more):
    posterior = prior + more
    ln_gamma = allowed_ln_gamma(prior, posterior)
    assert posterior_bound(ln_gamma, prior) == pytest.approx(posterior)
    assert posterior_floor(ln_gamma, posterior) == pytest.approx(prior)


def test_allowed_ln_gamma_posterior_below_prior_raises():
    with pytest.raises(ValueError, match="prior <= posterior"):
        allowed_ln_gamma(0.5, 0.4)
