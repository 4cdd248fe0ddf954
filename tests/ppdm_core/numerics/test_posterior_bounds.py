from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.numerics.amplification import format_gamma, posterior_bound

priors = st.floats(1e-6, 1 - 1e-6)
logs = st.floats(0.0, 30.0)


@pytest.mark.parametrize(
    ("b", "gamma", "posterior"), [(0.3, 28.03, 0.0273), (0.25, 54.6, 0.0518), (0.1, 22026, 0.957)]
)
def test_posterior_bound_paper_scales_expected_numbers(b, gamma, posterior):
    assert math.exp(1 / b) == pytest.approx(gamma, rel=1e-3)
    assert posterior_bound(1 / b, 0.001) == pytest.approx(posterior, rel=2e-3)


@given(logs, priors)
def test_posterior_bound_any_prior_is_bayes_with_largest_odds(ln_gamma, prior):
    gamma = math.exp(ln_gamma)
    bound = posterior_bound(ln_gamma, prior)
    assert bound == pytest.approx(gamma * prior / (1 + (gamma - 1) * prior))
    assert prior * (1 - 1e-12) <= bound <= 1.0


@given(logs, st.floats(0.0, 5.0), priors)
def test_posterior_bound_larger_gamma_never_tighter(ln_gamma, more, prior):
    assert posterior_bound(ln_gamma + more, prior) >= posterior_bound(ln_gamma, prior)


def test_posterior_bound_extreme_values_expected():
    assert posterior_bound(0.0, 0.3) == pytest.approx(0.3)
    assert posterior_bound(math.inf, 0.3) == 1.0
    assert posterior_bound(math.inf, 0.0) == 0.0
    assert posterior_bound(1000.0, 1e-9) == 1.0


@pytest.mark.parametrize(
    ("ln_gamma", "text"),
    [
        (math.log(2.5), "2.5"),
        (1 / 0.3, "28"),
        (math.log(99.0), "99"),
        (math.log(99.1), "99 (no useful worst-case bound)"),
        (math.log(1000.0), "1,000 (no useful worst-case bound)"),
        (80.0, "e^80.0 (no useful worst-case bound)"),
        (800.0, "e^800.0 (no useful worst-case bound)"),
        (math.inf, "unbounded"),
    ],
)
def test_format_gamma_values_expected_words(ln_gamma, text):
    assert format_gamma(ln_gamma) == text


def test_format_gamma_not_a_number_not_useful():
    assert "no useful" in format_gamma(math.nan)
