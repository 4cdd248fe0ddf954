from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.correlation_filter import (
    CorrelationFilter,
    choose_counts,
    find_noise_directions,
    spectral_factors,
)
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from tests.support.views import make_view


def make_noisy_view(Y, b, *, law="normal", loadings=None, bound=1.0, **facts) -> AttackerView:
    d = Y.shape[1] if loadings is None else len(loadings)
    space = "original" if loadings is None else "components"
    centre = None if loadings is None else np.full(d, 0.5)
    scales = np.full(Y.shape[1], b)
    public = PublicParameters(
        "noise", space, (), centre, loadings, law=law, scales=scales, facts=facts
    )
    return make_view(Y, d=d, bounds=(1 - bound, bound), public=public)


def draw_one_factor(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """All columns follow one number per record."""
    return 0.5 + np.outer(rng.uniform(-0.45, 0.45, n), np.where(np.arange(d) % 2, -1.0, 1.0))


def run_attack(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(CorrelationFilter().attack(view, np.random.default_rng(0)).candidates)


def breach_rate(X, X_hat) -> float:
    error = np.linalg.norm(X - X_hat, axis=1)
    return float(np.mean(error <= 0.1 * np.linalg.norm(X, axis=1)))


def test_correlation_filter_hand_worked_rows_expected_projection():
    # The rows spread along (1, 1) most: one component is their mean along it.
    view = make_noisy_view(np.array([[1.0, 3.0], [3.0, 1.0], [-2.0, -2.0]]), 0.1, bound=9.0)
    got = run_attack(view)["keep_1"]
    np.testing.assert_allclose(got, [[2.0, 2.0], [2.0, 2.0], [-2.0, -2.0]], atol=1e-12)
    np.testing.assert_allclose(run_attack(view)["keep_2"], view.Y, atol=1e-12)


def test_choose_counts_large_rank_all_to_twenty_then_series():
    assert choose_counts(3) == [1, 2, 3]
    assert choose_counts(20) == list(range(1, 21))
    many = choose_counts(216)
    assert many[:20] == list(range(1, 21))
    assert many[-1] == 216
    assert len(many) < 35
    assert many == sorted(set(many))


def test_spectral_factors_hand_worked_values_expected_factors():
    # Ratio 1/4: the edge of noise is 2.25; at v = 5, sqrt(3.75^2 - 1) / 5.
    got = spectral_factors(np.array([2.0, 2.25, 5.0]), 13)
    np.testing.assert_allclose(got, [0.0, 0.0, np.sqrt(3.75**2 - 1) / 5])


def test_spectral_factors_random_tables_least_error():
    """Against the truth, by trying many factors for the one strong direction."""
    rng = np.random.default_rng(1)
    n, d = 200, 100
    truth = np.outer(rng.normal(0, 2, n), rng.normal(0, 0.1, d))
    noisy = truth + rng.normal(0, 1, (n, d))
    U, S, Vt = np.linalg.svd(noisy, full_matrices=False)
    factors = spectral_factors(S**2 / (n - 1), n)
    assert np.count_nonzero(factors) == 1

    def loss(factor: float) -> float:
        return float(np.sum((factor * S[0] * np.outer(U[:, 0], Vt[0]) - truth) ** 2))

    assert loss(factors[0]) < 1.05 * min(map(loss, np.linspace(0, 1, 21)))
    assert loss(factors[0]) < 0.8 * loss(1.0)


def test_find_noise_directions_low_rank_noise_as_many_directions():
    M = np.random.default_rng(2).normal(0, 1, (5, 3))
    Q, deviation = find_noise_directions(M @ M.T)
    np.testing.assert_allclose((Q * deviation**2) @ Q.T, M @ M.T, atol=1e-9)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("law", ["normal", "laplace", "student_t"])
def test_correlation_filter_strong_correlation_removes_noise(law, seed):
    rng = np.random.default_rng(seed)
    X, b = draw_one_factor(150, 40, rng), 0.12
    if law == "student_t":
        noise = 0.05 * rng.standard_t(2, X.shape)
        view = make_noisy_view(X + noise, 0.05, law=law, nu=2.0)
    else:
        noise = rng.normal(0, b, X.shape) if law == "normal" else rng.laplace(0, b / 2, X.shape)
        view = make_noisy_view(X + noise, b if law == "normal" else b / 2, law=law)
    got = run_attack(view)
    plain = breach_rate(X, np.clip(X + noise, 0, 1))
    assert plain < 0.5
    assert breach_rate(X, got["keep_1"]) >= 0.9
    if law == "student_t":
        assert "shrunk" not in got
    else:
        assert breach_rate(X, got["marchenko_pastur"]) >= 0.9
        assert breach_rate(X, got["shrunk"]) >= 0.9


def test_correlation_filter_uneven_noise_measured_in_its_own_units():
    """A loud column carries the largest variance; only the corrected covariance sees past it."""
    rng = np.random.default_rng(3)
    X = draw_one_factor(2_000, 8, rng)
    b = np.array([1.0] + [0.1] * 7)
    view = make_noisy_view(X + rng.normal(0, 1, X.shape) * b, 1.0, bound=9.0)
    view = replace(view, public=replace(view.public, scales=b))
    got = run_attack(view)
    error = {name: np.mean((X_hat[:, 1:] - X[:, 1:]) ** 2) for name, X_hat in got.items()}
    for name in ("keep_1", "marchenko_pastur", "shrunk"):
        assert error[name] < 0.3 * 0.1**2, name
    naive = np.linalg.svd(view.Y - view.Y.mean(axis=0), full_matrices=False)[2][0]
    assert abs(naive[0]) > 0.9  # the loud column


def test_correlation_filter_independent_columns_no_gain():
    rng = np.random.default_rng(4)
    X = rng.random((300, 5))
    got = run_attack(make_noisy_view(0.5 + rng.normal(0, 1, X.shape), 1.0))
    plain = np.mean((X - X.mean(axis=0)) ** 2)
    for name, X_hat in got.items():
        assert np.mean((X - X_hat) ** 2) > 0.98 * plain, name


def test_correlation_filter_components_and_original_space_same_estimates():
    rng = np.random.default_rng(5)
    X = draw_one_factor(100, 6, rng)
    L = np.linalg.qr(rng.normal(0, 1, (6, 6)))[0][:, :3]
    Z = (X - 0.5) @ L + rng.laplace(0, 0.1, (100, 3))
    view = make_noisy_view(Z, 0.1, law="laplace", loadings=L)
    back = replace(view, Y=0.5 + Z @ L.T, public=replace(view.public, space="original"))
    one, two = run_attack(view), run_attack(back)
    assert list(one) == ["keep_1", "keep_2", "keep_3", "marchenko_pastur", "shrunk"]
    for name in one:
        np.testing.assert_allclose(one[name], two[name], atol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
def test_correlation_filter_tiny_and_constant_releases_finite_values(n):
    for X_hat in run_attack(make_noisy_view(np.full((n, 4), 0.25), 0.1)).values():
        np.testing.assert_allclose(X_hat, 0.25)


def test_correlation_filter_shuffled_rows_same_estimates():
    rng = np.random.default_rng(6)
    view = make_noisy_view(draw_one_factor(60, 5, rng) + rng.normal(0, 0.1, (60, 5)), 0.1)
    order = rng.permutation(60)
    one, two = run_attack(view), run_attack(replace(view, Y=view.Y[order]))
    for name in one:
        np.testing.assert_allclose(two[name], one[name][order], atol=1e-9)


def test_correlation_filter_without_noise_scale_or_map_not_applicable():
    view = make_noisy_view(np.ones((3, 2)), 0.1)
    with pytest.raises(NotApplicable, match="correlation_filter needs a published scale"):
        run_attack(replace(view, public=replace(view.public, scales=None)))
    with pytest.raises(NotApplicable, match="correlation_filter needs the original columns"):
        run_attack(replace(view, public=replace(view.public, space="rotated")))
