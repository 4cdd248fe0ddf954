from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Guarantee
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise_distributions import (
    BOUNDED_DISTRIBUTIONS,
    SAMPLED_DISTRIBUTIONS,
    find_distribution,
)
from ppdm_core.sanitizers.additive_noise import AdditiveNoise
from tests.support.tables import (
    fit_sanitizer,
    make_rows,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)


def make_method(law: str, b: float = 0.3, **parameters) -> AdditiveNoise:
    return AdditiveNoise(b=b, law=law, nu=6 if law == "student_t" else None, **parameters)


def compute_guarantee(sanitizer: AdditiveNoise, rows: ArrayRows) -> Guarantee:
    fitted = fit_sanitizer(sanitizer, rows)
    return sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)


@pytest.mark.parametrize("law", SAMPLED_DISTRIBUTIONS)
def test_additive_noise_each_law_has_its_moments(law):
    rows = make_table(20_000, 3)
    sanitizer = make_method(law)
    released = run_sanitizer(sanitizer, rows)
    noise = read_cells(released.rows) - read_cells(scale_rows(rows, fit_sanitizer(sanitizer, rows)))
    shape = find_distribution(law, 6 if law == "student_t" else None)
    variance, fourth = 0.3**2 * shape.variance, 0.3**4 * shape.fourth_moment
    n = noise.size
    assert abs(noise.mean()) < 4 * math.sqrt(variance / n)
    assert abs(noise.var() - variance) < 4 * math.sqrt((fourth - variance**2) / n)
    across = np.corrcoef(noise.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(across) < 4.5 / math.sqrt(20_000))


@pytest.mark.parametrize("scale", ["minmax", "zscore", "none"])
def test_additive_noise_other_units_scales_with_declared_range(scale):
    rows = make_table(300)
    sanitizer = make_method("laplace", scale=scale)
    fitted = fit_sanitizer(sanitizer, rows)
    widths = scale_rows(rows, fitted).schema.widths
    public = run_sanitizer(sanitizer, rows, fitted=fitted).public
    np.testing.assert_allclose(public.scales, 0.3 * widths)
    figures = compute_guarantee(sanitizer, rows)
    # Widening to the grid adds up to two steps of b / 1000 to each range.
    assert 1 / 0.3 <= figures.ln_component == figures.ln_attribute <= 1 / 0.3 + 0.003
    assert 5 / 0.3 <= figures.ln_record <= 5 / 0.3 + 0.011


def test_guarantee_each_bounded_law_equals_closed_form():
    rows = make_table(60, 4)
    at = 1 / 0.25  # the range in scales; a multiple of the grid, so that nothing is widened
    expected = {"laplace": at, "logistic": at, "student_t": 7 * math.asinh(at / (2 * math.sqrt(6)))}
    for law, ln_gamma in expected.items():
        guarantee = compute_guarantee(make_method(law, 0.25), rows)
        assert guarantee.kind == "bounded"
        assert guarantee.ln_component == pytest.approx(ln_gamma, abs=1e-6)
        assert guarantee.ln_record == pytest.approx(4 * ln_gamma, abs=1e-5)
        assert guarantee.ln_component > ln_gamma  # never below the figure of exact arithmetic


@pytest.mark.parametrize(
    ("law", "why"), [("normal", "faster than any exponential"), ("uniform", "excludes")]
)
def test_guarantee_unbounded_law_states_reason(law, why):
    guarantee = compute_guarantee(make_method(law), make_table())
    assert guarantee.kind == "empirical"
    assert guarantee.ln_component == guarantee.ln_attribute == guarantee.ln_record == math.inf
    assert why in guarantee.assumptions[0]


def test_guarantee_bounds_from_data_is_given_basis():
    columns = Schema(tuple(Numeric(f"x{j}", 0.0, 1.0, from_data=True) for j in range(2)))
    rows = make_rows(np.full((5, 2), 0.5), columns)
    assert compute_guarantee(make_method("laplace"), rows).kind == "bounded_given_basis"
    assert (
        compute_guarantee(make_method("laplace", scale="zscore"), make_table()).kind
        == "bounded_given_basis"
    )


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(SAMPLED_DISTRIBUTIONS),
    st.floats(0.02, 50.0),
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
)
def test_sanitize_any_bounds_outputs_on_grid_within_published_ranges(law, b, low, width):
    columns = Schema((Numeric("x", low, low + width),))
    X = low + width * np.linspace(0, 1, 40)[:, None]
    released = run_sanitizer(make_method(law, b), make_rows(np.minimum(X, low + width), columns))
    public, Y = released.public, read_cells(released.rows)
    steps = (Y - public.centre) / public.grid
    assert np.array_equal(steps, np.rint(steps))
    bottom, top = public.ranges.T + public.centre
    assert np.all((bottom <= Y) & (top >= Y))
    column = released.rows.schema.numeric[0]
    assert (column.low, column.high) == (bottom[0], top[0])


def test_facts_distance_distortion_matches_simulation():
    rows = make_table(3000, 3)
    sanitizer = make_method("logistic")
    released = run_sanitizer(sanitizer, rows)
    X, Y = read_cells(scale_rows(rows, fit_sanitizer(sanitizer, rows))), read_cells(released.rows)
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, 3000, (2, 200_000))
    change = np.sum((X[i] - Y[j]) ** 2, axis=1) - np.sum((X[i] - X[j]) ** 2, axis=1)
    facts = released.public.facts
    # Published in two digits, upward.
    mean = 3 * 0.3**2 * math.pi**2 / 3
    assert mean <= facts["distance_distortion_mean"] <= 1.1 * mean
    assert change.mean() == pytest.approx(mean, rel=0.05)
    assert change.var() <= facts["distance_distortion_variance"]


def test_facts_student_t_without_moment_leaves_it_out():
    def facts(nu):
        return run_sanitizer(
            AdditiveNoise(b=0.3, law="student_t", nu=nu), make_table()
        ).public.facts

    assert set(facts(2)) == {"nu"}
    assert set(facts(3)) == {"nu", "distance_distortion_mean"}
    assert len(facts(5)) == 3


def test_fingerprint_other_law_or_shape_differs():
    rows = make_table()
    fitted = fit_sanitizer(make_method("laplace"), rows)
    schema = scale_rows(rows, fitted).schema
    prints = {make_method(law).fingerprint(schema, fitted) for law in SAMPLED_DISTRIBUTIONS}
    prints.add(AdditiveNoise(b=0.3, law="student_t", nu=5).fingerprint(schema, fitted))
    prints.add(make_method("laplace", 0.31).fingerprint(schema, fitted))
    assert len(prints) == len(SAMPLED_DISTRIBUTIONS) + 2
    other_words = AdditiveNoise(b=0.3, law="student_t", nu=6.0, refit_waiver="DPO")
    assert other_words.fingerprint(schema, fitted) == make_method("student_t").fingerprint(
        schema, fitted
    )


def test_sanitize_too_little_noise_raises():
    for law in BOUNDED_DISTRIBUTIONS:
        with pytest.raises(BadInput, match="'b' parameter of AdditiveNoise must be above 1/120"):
            make_method(law, 1 / 120)
        # Just above, two steps of the grid are missing.
        with pytest.raises(BadInput, match=r"all inputs\. Raise 'b' to 1\.1 times"):
            run_sanitizer(make_method(law, 1 / 120 + 1e-9), make_table())
        assert np.isfinite(
            read_cells(run_sanitizer(make_method(law, 1.1 / 120), make_table()).rows)
        ).all()
    for law in ("normal", "uniform"):
        assert np.isfinite(
            read_cells(run_sanitizer(make_method(law, 1e-9), make_table()).rows)
        ).all()


def test_sanitize_constant_column_with_declared_bounds_is_perturbed():
    X = make_table(4000, 2).whole.X.copy()
    X[:, 1] = 0.25
    noise = read_cells(run_sanitizer(make_method("laplace"), make_rows(X)).rows) - [
        0,
        (0.25 + 2) / 6,
    ]
    assert noise[:, 1].var() == pytest.approx(2 * 0.3**2, rel=0.1)


def test_sanitize_column_without_width_raises():
    rows = make_rows(np.full((5, 1), 3.0), Schema((Numeric("x", 3.0, 3.0),)))
    with pytest.raises(BadInput, match="bounds of column 'x' are equal"):
        run_sanitizer(make_method("laplace", scale="none"), rows)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "Method 'additive_noise' needs the parameter 'b'."),
        ({"b": 0}, "The 'b' parameter of AdditiveNoise must be a number from 1e-09 to 1e+09."),
        ({"b": math.nan}, "The 'b' parameter of AdditiveNoise must be a number from"),
        ({"b": "x"}, "The 'b' parameter of AdditiveNoise must be a number from"),
        ({"b": 1, "law": "cauchy"}, "must be one of laplace, logistic, student_t, normal, uniform"),
        ({"b": 1, "law": "student_t"}, 'must be a number exactly when law = "student_t"'),
        ({"b": 1, "nu": 3}, 'must be a number exactly when law = "student_t"'),
        ({"b": 1, "law": "student_t", "nu": 0.5}, "must be a number from 1 to 20. Got 0.5."),
        ({"b": 1, "law": "student_t", "nu": 21}, "must be a number from 1 to 20. Got 21."),
        ({"b": 1, "law": "student_t", "nu": True}, "must be a number from 1 to 20. Got True."),
    ],
)
def test_parameters_invalid_raise_with_name(parameters, words):
    with pytest.raises(BadInput) as caught:
        AdditiveNoise.from_parameters(parameters)
    assert words in str(caught.value)
