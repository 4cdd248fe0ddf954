from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.model.attacker import AttackerView, KnownRows
from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.random_projection import STEP, RandomProjection, compute_ratio_moments
from tests.support.tables import (
    KEY,
    fit_sanitizer,
    make_rows,
    make_schema,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)


def release_table(sanitizer: RandomProjection, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rows = make_table(n)
    fitted = fit_sanitizer(sanitizer, rows)
    return read_cells(scale_rows(rows, fitted)), read_cells(
        run_sanitizer(sanitizer, rows, fitted=fitted).rows
    )


def solve_matrix(sanitizer: RandomProjection) -> np.ndarray:
    X, Y = release_table(sanitizer)
    R = np.linalg.lstsq(X, Y, rcond=None)[0]  # (d, k)
    np.testing.assert_allclose(X @ R, Y, atol=1e-8)
    return R


def draw_ratios(sanitizer: RandomProjection, d: int, count: int) -> np.ndarray:
    """Draw |R'x|^2 / |x|^2 for one x and many keys."""
    x = np.linspace(-1.0, 2.0, d)
    noise, factor = Noise(KEY), sanitizer._compute_factor(d)
    found = np.empty(count)
    for i in range(count):
        R = sanitizer._draw_directions(make_schema(d), noise.derive(str(i)), {}) * factor
        found[i] = np.sum((x @ R) ** 2) / np.sum(x**2)
    return found


@pytest.mark.parametrize("normalisation", ["unbiased", "unit_columns"])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (8, 5)])
def test_facts_moments_match_simulation(d, k, normalisation):
    sanitizer = RandomProjection(components=k, normalisation=normalisation)
    rows = make_table(20, d)
    facts = run_sanitizer(sanitizer, rows).public.facts
    ratios = draw_ratios(sanitizer, d, 1000)
    mean, variance = (facts[f"squared_distance_ratio_{name}"] for name in ("mean", "variance"))
    assert abs(ratios.mean() - mean) < 4 * np.sqrt(variance / len(ratios))
    fourth = np.mean((ratios - mean) ** 4)
    assert abs(ratios.var() - variance) < 5 * np.sqrt((fourth - variance**2) / len(ratios))


def test_directions_are_uniform():
    ratios = draw_ratios(RandomProjection(components=1, normalisation="unit_columns"), 5, 1000)
    assert stats.kstest(ratios, stats.beta(0.5, 2.0).cdf).pvalue > 1e-6


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 300), st.data())
def test_ratio_moments_match_beta_distribution(d, data):
    k = data.draw(st.integers(1, d))
    one = stats.beta(0.5, (d - 1) / 2)
    np.testing.assert_allclose(compute_ratio_moments(d, k, 1.0), (k * one.mean(), k * one.var()))
    mean, variance = compute_ratio_moments(d, k, np.sqrt(d / k))
    assert mean == pytest.approx(1.0)
    assert variance < 2 / k  # a Gaussian matrix without normalisation has 2/k


def test_unit_columns_shrink_squared_distances_by_component_share():
    facts = run_sanitizer(
        RandomProjection(components=2, normalisation="unit_columns"), make_table(20)
    ).public
    assert facts.facts["squared_distance_ratio_mean"] == pytest.approx(2 / 5)
    assert facts.facts["components"] == 2


def test_directions_have_length_one():
    R = solve_matrix(RandomProjection(components=3, normalisation="unit_columns"))
    np.testing.assert_allclose(np.linalg.norm(R, axis=0), 1.0, atol=1e-7)
    S = solve_matrix(RandomProjection(components=3))
    np.testing.assert_allclose(np.linalg.norm(S, axis=0), np.sqrt(5 / 3), atol=1e-7)


def test_sanitize_smaller_count_shows_no_further_direction():
    few, many = (
        solve_matrix(RandomProjection(components=k, normalisation="unit_columns")) for k in (2, 4)
    )
    np.testing.assert_allclose(few, many[:, :2], atol=1e-7)


@pytest.mark.parametrize(("components", "k"), [(4, 4), (0.5, 2), (0.01, 1), (5, 5)])
def test_components_as_count_or_share(components, k):
    released = run_sanitizer(RandomProjection(components=components), make_table(20))
    assert read_cells(released.rows).shape == (20, k)
    assert released.public.columns == tuple(f"projected_{i + 1}" for i in range(k))


@pytest.mark.parametrize("scale", ["minmax", "zscore", "none"])
def test_sanitize_outputs_rounded_inside_declared_bounds(scale):
    released = run_sanitizer(RandomProjection(components=4, scale=scale), make_table(300))
    Y = read_cells(released.rows)
    assert np.array_equal(Y / STEP, np.rint(Y / STEP))
    assert not np.any(np.signbit(Y) & (Y == 0))
    assert (released.rows.schema.lows <= Y).all()
    assert (released.rows.schema.highs >= Y).all()


def test_public_parameters_hold_no_matrix():
    public = run_sanitizer(RandomProjection(components=2), make_table(20)).public
    assert public.loadings is None
    assert public.centre is None
    assert not public.preserves_distances


def test_sanitize_zero_record_stays_zero():
    X = make_table(20).whole.X.copy()
    X[3] = make_schema().lows  # scaled to 0
    assert not read_cells(run_sanitizer(RandomProjection(components=3), make_rows(X)).rows)[3].any()


def test_known_pairs_recover_kept_directions():
    X, Y = release_table(RandomProjection(components=5), 60)
    public = run_sanitizer(RandomProjection(components=5), make_table(60)).public
    view = AttackerView(
        Y=Y,
        label=np.zeros(60, dtype=np.int32),
        public=public,
        schema=make_schema(),
        epsilon=0.1,
        known=KnownRows(X[:20], np.arange(20)),
    )
    X_hat = KnownPairs().attack(view, np.random.default_rng(1)).candidates["regression"]
    np.testing.assert_allclose(X_hat, X, atol=1e-4)


@pytest.mark.parametrize("components", [0, -1, 1.0, 1.5, 0.0, True, "2", None])
def test_components_invalid_raise(components):
    with pytest.raises(BadInput, match="'components' parameter of RandomProjection"):
        RandomProjection(components=components)


def test_normalisation_invalid_raises():
    with pytest.raises(BadInput, match="one of unbiased, unit_columns"):
        RandomProjection(normalisation="none")


def test_sanitize_too_few_columns_for_components_raises():
    with pytest.raises(BadInput, match=r"an int in \[1, 5\]\. Got 6"):
        run_sanitizer(RandomProjection(components=6), make_table(20))
    with pytest.raises(BadInput, match="at least 2 features; there is 1"):
        run_sanitizer(RandomProjection(), make_table(20, 1))


def test_guarantee_is_empirical():
    promise = RandomProjection().guarantee(make_schema(), {})
    assert promise.kind == "empirical"
    assert np.isinf([promise.ln_component, promise.ln_attribute, promise.ln_record]).all()


def test_parts_other_count_is_another_draw():
    rows = make_table()
    names = {
        part.fingerprint
        for components in (2, 3)
        for part in RandomProjection(components=components).parts(rows.schema, {})
    }
    assert len(names) == 2
