from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.attacks._map_fitting import _leave_one_out_errors, procrustes, ridge


def test_procrustes_rotation_scale_translation_recovered():
    rng = np.random.default_rng(9)
    basis = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    Y = rng.normal(0.0, 1.0, (20, 3))
    X = 2.5 * Y @ basis.T + 1.0
    np.testing.assert_allclose(procrustes(Y[:4], X[:4], Y), X, atol=1e-8)


def test_ridge_linear_map_recovered_from_few_pairs():
    rng = np.random.default_rng(12)
    X = rng.normal(0.0, 1.0, (40, 3))
    Y = X @ rng.normal(0.0, 1.0, (3, 4)) + 5.0
    np.testing.assert_allclose(ridge(Y[:6], X[:6], Y), X, atol=1e-8)


@pytest.mark.parametrize("learn", [procrustes, ridge])
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_map_fitting_any_unit_same_estimates(learn, unit):
    rng = np.random.default_rng(13)
    X = rng.normal(0.0, 1.0, (40, 3))
    Y = X @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    np.testing.assert_allclose(learn(unit * Y[:6], X[:6], unit * Y), X, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(
    k=st.integers(3, 9),
    s=st.integers(1, 6),
    penalty=st.sampled_from([1e-4, 1e-2, 1.0, 30.0]),
    seed=st.integers(0, 1_000),
)
def test_leave_one_out_errors_random_pairs_match_brute_force(k, s, penalty, seed):
    rng = np.random.default_rng(seed)
    Y, X = rng.normal(size=(k, s)), rng.normal(size=(k, 2))
    U, S, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    heard = S / S[0] > 1e-10
    U, S = U[:, heard], S[heard]
    centred = X - X.mean(axis=0)
    fast = _leave_one_out_errors(U, S, U.T @ centred, centred, penalty)
    slow = np.zeros(2)
    for i in range(k):
        rest = np.arange(k) != i
        x0, y0 = X[rest].mean(axis=0), Y[rest].mean(axis=0)
        A = Y[rest] - y0
        beta = np.linalg.solve(A.T @ A + penalty * np.eye(s), A.T @ (X[rest] - x0))
        slow += (X[i] - x0 - (Y[i] - y0) @ beta) ** 2 / k
    np.testing.assert_allclose(fast, slow, rtol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_ridge_few_pairs_finite_and_near_known_records(k):
    rng = np.random.default_rng(10)
    X, Y = rng.uniform(0, 1, (30, 4)), rng.uniform(0, 1, (30, 6))
    X_hat = ridge(Y[:k], X[:k], Y)
    assert np.isfinite(X_hat).all()
    if k == 1:
        np.testing.assert_array_equal(X_hat, np.tile(X[0], (30, 1)))
