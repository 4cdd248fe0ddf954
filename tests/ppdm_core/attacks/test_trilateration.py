from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

from ppdm_core.attacks.trilateration import (
    Trilateration,
    add_fixed_point,
    fit_monotone,
    fit_scale,
    locate_points,
)
from ppdm_core.model.attacker import AttackerView, KnownRows
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.views import make_known, make_public, make_view


def make_anchors_view(X, Y, known, **fields) -> AttackerView:
    return make_view(
        Y,
        d=X.shape[1],
        bounds=(-20.0, 20.0),
        public=make_public(Y),
        known=make_known(X, known),
        **fields,
    )


def breach_rate(X: np.ndarray, X_hat: np.ndarray) -> float:
    error = np.linalg.norm(X - X_hat, axis=1)
    return float(np.mean(error <= 0.1 * np.linalg.norm(X, axis=1) + 1e-12))


def test_locate_points_hand_worked_point_found():
    # 5 from (0, 0), sqrt(17) from (4, 0), sqrt(10) from (0, 3): it is (3, 4) on half the scale.
    anchors = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])
    Yk, Y = anchors / 2, np.array([[1.5, 2.0]])
    X_hat = locate_points(anchors, Yk, Y, fit_scale(anchors, Yk), 1e-9, 4)
    np.testing.assert_allclose(X_hat, [[3.0, 4.0]], atol=1e-6)


@pytest.mark.extended
@pytest.mark.parametrize("scale", [1.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_trilateration_rotated_and_scaled_rows_recovered(seed, scale):
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 1.0, (150, 4))
    Y = scale * X @ random_orthogonal(4, rng) + 3.0
    estimate = Trilateration().attack(make_anchors_view(X, Y, np.arange(12)), rng)
    for name in ("metric", "ordinal"):
        assert breach_rate(X[12:], estimate.candidates[name][12:]) > 0.9
        assert estimate.claims[name][12:].mean() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_trilateration_monotone_distortion_ordinal_beats_metric(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(4.0, 1.0, (120, 2))
    # Rows whose distances are sqrt(2 - 2 exp(-d^2)), which keeps nothing but the order.
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4)
    values, vectors = np.linalg.eigh(K)
    Y = vectors * np.sqrt(np.maximum(values, 0.0))
    candidates = Trilateration().attack(make_anchors_view(X, Y, np.arange(25)), rng).candidates
    error = {
        name: np.median(np.linalg.norm(X_hat - X, axis=1)[25:])
        for name, X_hat in candidates.items()
    }
    assert error["ordinal"] < 0.05
    assert error["metric"] > 3 * error["ordinal"]


def test_fit_monotone_hand_worked_pairs_expected_map():
    # Released distances 1, 2, 3 stand for 2, 6, 4: the last two become 5, straight in between.
    Xk = np.array([[0.0], [2.0], [6.0]])
    Yk = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])  # distances 1, 3 and 2
    bend = fit_monotone(Xk, Yk)
    np.testing.assert_allclose(bend(np.array([0.5, 1.0, 2.0, 3.0])), [1.0, 2.0, 4.0, 6.0])
    bend = fit_monotone(Xk[[0, 1, 2]], Yk[[0, 2, 1]])  # now 2 -> 3, 6 -> 1, 4 -> 2: all one level
    np.testing.assert_allclose(bend(np.array([1.9, 2.0])), [3.8, 4.0])


def test_refine_points_noisy_distances_match_optimiser():
    rng = np.random.default_rng(3)
    anchors = rng.normal(0.0, 1.0, (9, 3))
    x = rng.normal(0.0, 1.0, 3)
    noisy = np.linalg.norm(anchors - x, axis=1) + rng.normal(0.0, 0.05, 9)
    Yk = np.diag(noisy) / np.sqrt(2)  # the origin is noisy / sqrt(2) from them

    def distances(D):
        return D * np.sqrt(2)

    X_hat = locate_points(anchors, Yk, np.zeros((1, 9)), distances, 0.0, 50)[0]
    weight = np.sqrt(1.0 / (1.0 + noisy / noisy.mean()))
    brute = least_squares(
        lambda p: weight * (np.linalg.norm(anchors - p, axis=1) - noisy), np.zeros(3)
    )
    np.testing.assert_allclose(X_hat, brute.x, atol=1e-4)


def test_locate_points_few_anchors_projection_on_span():
    rng = np.random.default_rng(4)
    X = rng.normal(0.0, 1.0, (60, 6))
    Xk, Q = X[:4], random_orthogonal(6, rng)
    X_hat = locate_points(Xk, Xk @ Q, X @ Q, lambda D: D, 1e-9, 6)
    basis = np.linalg.svd(Xk - Xk.mean(axis=0))[2][:3]
    foot = Xk.mean(axis=0) + (X - Xk.mean(axis=0)) @ basis.T @ basis
    np.testing.assert_allclose(X_hat, foot, atol=1e-4)


def test_add_fixed_point_preserved_origin_added():
    rng = np.random.default_rng(5)
    X = rng.normal(2.0, 1.0, (40, 4))
    fixed, moved = X @ random_orthogonal(4, rng), X @ random_orthogonal(4, rng) + 5.0
    for Y, count in ((fixed, 5), (moved, 4)):
        view = make_anchors_view(X, Y, np.arange(4))
        assert len(add_fixed_point(view, X[:4], Y[:4])[0]) == count
    estimate = Trilateration().attack(make_anchors_view(X, fixed, np.arange(4)), rng)
    assert breach_rate(X, estimate.candidates["metric"]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_trilateration_independent_noise_no_breach(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 1.0, (200, 4))
    view = make_anchors_view(X, rng.laplace(0.0, 1.0, X.shape), np.arange(20))
    estimate = Trilateration().attack(view, rng)
    baseline = breach_rate(X[20:], np.tile(X.mean(axis=0), (180, 1)))
    for name, X_hat in estimate.candidates.items():
        assert breach_rate(X[20:], X_hat[20:]) <= baseline + 0.05
        assert estimate.claims[name][20:].mean() < 0.15


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("s", [1, 3, 7])
def test_trilateration_degenerate_tables_finite_values(k, s):
    rng = np.random.default_rng(6)
    X = rng.random((8, 3))
    X[:, 1] = 0.5
    X[4] = X[3]
    Y = np.pad(X @ rng.normal(size=(3, min(s, 3))), ((0, 0), (0, max(0, s - 3))))
    estimate = Trilateration().attack(make_anchors_view(X, Y, np.arange(k)), rng)
    for name, X_hat in estimate.candidates.items():
        assert np.isfinite(X_hat).all()
        np.testing.assert_array_equal(X_hat[:k], X[:k])
        assert (estimate.claims[name][:k] == 1.0).all()


def test_trilateration_shuffled_rows_same_estimates_in_bounds():
    rng = np.random.default_rng(7)
    X = rng.random((50, 3))
    Y = X @ random_orthogonal(3, rng) + rng.normal(0.0, 0.3, X.shape)
    view = make_anchors_view(X, Y, np.arange(10))
    view = replace(view, schema=Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(3))))
    order = rng.permutation(50)
    rows = np.argsort(order)[np.arange(10)]
    moved = replace(view, Y=Y[order], known=KnownRows(X[:10], rows))
    one, two = (Trilateration().attack(v, rng).candidates for v in (view, moved))
    for name, X_hat in one.items():
        assert X_hat.min() >= 0.0
        assert X_hat.max() <= 1.0
        np.testing.assert_allclose(two[name], X_hat[order], atol=1e-8)


def test_trilateration_without_known_records_not_applicable():
    view = make_anchors_view(np.ones((3, 2)), np.ones((3, 2)), np.array([], dtype=np.int64))
    with pytest.raises(NotApplicable, match="trilateration needs known records"):
        Trilateration().attack(view, np.random.default_rng(0))
