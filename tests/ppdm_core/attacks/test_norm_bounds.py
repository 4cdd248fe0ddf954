from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.norm_bounds import NormBounds, norm_bound, product_deviation
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.sanitizers.random_projection import compute_ratio_moments
from tests.support.views import make_known, make_view


def draw_directions(d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    R = rng.standard_normal((d, k))
    return R / np.linalg.norm(R, axis=0)


def make_projected_view(X, Y, factor, known=(), **fields) -> AttackerView:
    d, k = X.shape[1], Y.shape[1]
    facts = {
        "components": float(k),
        "squared_distance_ratio_mean": compute_ratio_moments(d, k, factor)[0],
    }
    known = np.array(known, dtype=np.int64)
    return make_view(
        Y,
        d=d,
        public=PublicParameters("random_projection", "rotated", (), facts=facts),
        known=make_known(X, known) if len(known) else None,
        **fields,
    )


def hit_rate(X, estimate, rows=slice(None)) -> float:
    length = np.linalg.norm(X, axis=1)[rows]
    return float(np.mean(np.abs(estimate[rows] - length) <= 0.1 * length))


def run_attack(view: AttackerView):
    return NormBounds().attack(view, np.random.default_rng(0))


def test_norm_bound_hand_worked_values_expected():
    assert norm_bound(6.0, 2.0) == 3.0
    assert norm_bound(6.0, 2.0, 2.0) == 2.0
    assert norm_bound(-6.0, 2.0) == -3.0  # says nothing, but is true
    assert norm_bound(1.0, 0.0) == 0.0


def test_norm_bound_exact_products_holds():
    rng = np.random.default_rng(1)
    X = rng.normal(0, 1, (50, 6))
    bounds = norm_bound(X @ X.T, np.linalg.norm(X, axis=1))
    length = np.linalg.norm(X, axis=1)[:, None]
    assert (bounds <= length + 1e-12).all()


def test_product_deviation_random_projections_match_monte_carlo():
    rng = np.random.default_rng(2)
    d, k = 6, 3
    a, c = rng.random(d), rng.random(d)
    draws = rng.standard_normal((20_000, d, k))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    products = np.einsum("d,ndk,ndk->n", a, draws, np.einsum("ndk,d->nk", draws, c)[:, None, :])
    products *= d / k
    got = product_deviation(np.linalg.norm(a), np.linalg.norm(c), a @ c, d, k)
    assert products.mean() == pytest.approx(a @ c, rel=0.02)
    assert products.std() == pytest.approx(float(got), rel=0.02)


def test_norm_bounds_hand_worked_rows_expected_lengths():
    # Two directions of four, unit columns: squared lengths halve on average.
    X, Y = np.eye(4), np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 0.5], [0.0, 0.0]])
    got = run_attack(make_projected_view(X, Y, 1.0, [0])).candidates
    np.testing.assert_allclose(got["direct"], [1.0, np.sqrt(2), 0.5 * np.sqrt(2), 0.0])
    np.testing.assert_allclose(got["calibrated"], [1.0, 1.0, 0.5, 0.0])  # the known one is exact
    assert (got["lower_bound"] >= 0).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("normalisation", ["unbiased", "unit_columns"])
def test_norm_bounds_many_directions_estimates_lengths(normalisation, seed):
    rng = np.random.default_rng(seed)
    d, k = 40, 36
    X = (rng.random(d) + 0.1 * rng.random((200, d))) * rng.uniform(0.1, 0.9, (200, 1))
    factor = np.sqrt(d / k) if normalisation == "unbiased" else 1.0
    Y = X @ draw_directions(d, k, rng) * factor
    got = run_attack(make_projected_view(X, Y, factor, range(20)))
    others = slice(20, None)
    mean = np.full(200, np.linalg.norm(X, axis=1).mean())
    assert hit_rate(X, mean, others) < 0.3
    best = max(hit_rate(X, estimate, others) for estimate in got.candidates.values())
    assert best >= 0.9
    assert got.notes["positive_bounds"] > 0.5
    held = got.candidates["lower_bound"][others] <= np.linalg.norm(X, axis=1)[others]
    assert held.mean() > 0.95


def test_norm_bounds_known_records_calibrate_matrix():
    """Few directions: the published factor is off for all alike, and the pairs see by how much."""
    rng = np.random.default_rng(3)
    shape = rng.random(10)
    X = np.outer(rng.uniform(0.2, 1.0, 100), shape) + rng.normal(0, 0.005, (100, 10))
    Y = X @ draw_directions(10, 2, rng) * np.sqrt(5)
    got = run_attack(make_projected_view(X, Y, np.sqrt(5), [0, 1])).candidates
    assert hit_rate(X, got["calibrated"]) > 0.95
    for fields in ({"records": X[:5]}, {"sample": X[5:60]}):
        got = run_attack(make_projected_view(X, Y, np.sqrt(5), **fields)).candidates
        assert set(got) == {"direct", "calibrated"}
    assert hit_rate(X, got["calibrated"]) > 0.5


def test_norm_bounds_rotation_exact_unless_translated():
    rng = np.random.default_rng(4)
    X, M = rng.random((30, 4)), np.linalg.qr(rng.normal(0, 1, (4, 4)))[0]
    public = PublicParameters("random_rotation", "rotated", (), preserves_distances=True)
    view = replace(make_projected_view(X, X @ M, 1.0, [0, 1]), public=public)
    got = run_attack(view)
    np.testing.assert_allclose(got.candidates["direct"], np.linalg.norm(X, axis=1))
    assert (got.candidates["lower_bound"] <= np.linalg.norm(X, axis=1) + 1e-12).all()
    moved = replace(view, public=replace(public, facts={"translation": "secret"}))
    with pytest.raises(NotApplicable, match="norm_bounds needs a release that preserves lengths"):
        run_attack(moved)


def test_norm_bounds_independent_rows_no_gain():
    rng = np.random.default_rng(5)
    X = rng.random((300, 6)) * rng.uniform(0.1, 1.0, (300, 1))
    Y = rng.permutation(X) @ draw_directions(6, 6, rng)
    got = run_attack(make_projected_view(X, Y, 1.0, range(10)))
    guesses = np.linspace(0.1, 2.0, 50)
    fixed = max(hit_rate(X, np.full(300, guess), slice(10, None)) for guess in guesses)
    for name, estimate in got.candidates.items():
        assert hit_rate(X, estimate, slice(10, None)) <= fixed + 0.06, name


def test_norm_bounds_degenerate_tables_finite_lengths():
    X = np.zeros((3, 4))
    got = run_attack(make_projected_view(X, np.zeros((3, 2)), 1.0, [0]))
    for estimate in got.candidates.values():
        np.testing.assert_allclose(estimate, 0.0, atol=1e-9)
    assert got.notes["positive_bounds"] == 0.0
    everybody = run_attack(make_projected_view(X + 1.0, np.ones((3, 2)), 1.0, [0, 1, 2]))
    np.testing.assert_allclose(everybody.candidates["regression"], 2.0)
    assert everybody.notes == {}


def test_norm_bounds_shuffled_rows_same_lengths():
    rng = np.random.default_rng(6)
    X = rng.random((50, 5))
    Y = X @ draw_directions(5, 3, rng)
    order = rng.permutation(50)
    known = np.arange(8)
    one = run_attack(make_projected_view(X, Y, 1.0, known)).candidates
    two = run_attack(
        make_projected_view(X[order], Y[order], 1.0, np.argsort(order)[known])
    ).candidates
    for name in one:
        np.testing.assert_allclose(two[name], one[name][order], atol=1e-9)
