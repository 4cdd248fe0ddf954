from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks._noise_likelihood import KnownNoise, read_noise
from ppdm_core.attacks._posterior_mean import KernelPrior
from ppdm_core.attacks.shrinkage import (
    Shrinkage,
    filter_jointly,
    filter_with_sample,
    find_score_ranges,
    shrink_components,
    stretch_to_covariance,
)
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS, find_distribution
from tests.support.views import make_view

WIDE = 1e6  # bounds that clip nothing


def make_noisy_view(Z, centre, loadings, scales, *, sample=None, bound=WIDE) -> AttackerView:
    public = PublicParameters(
        "pca", "components", (), centre, loadings, law="laplace", scales=scales
    )
    return make_view(Z, d=len(centre), bounds=(-bound, bound), public=public, sample=sample)


def draw_exact_sample(mean, S, p: int, rng: np.random.Generator) -> np.ndarray:
    """p records whose sample mean and covariance are exactly these."""
    G = rng.standard_normal((p, len(mean)))
    G -= G.mean(axis=0)
    G = np.linalg.qr(G)[0] * np.sqrt(p - 1)
    return mean + G @ np.linalg.cholesky(S).T


def draw_noisy_pca(n: int, d: int, s: int, b: float, rng: np.random.Generator):
    X = (
        rng.normal(0.0, 1.0, (n, d))
        * np.geomspace(2.0, 0.1, d)
        @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        + 1.0
    )
    loadings = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:s].T
    centre = X.mean(axis=0).round(1)
    return X, (X - centre) @ loadings + rng.laplace(0.0, b, (n, s)), centre, loadings


def mean_square_error(X, X_hat) -> float:
    return float(np.mean(np.sum((X - X_hat) ** 2, axis=1)))


def test_shrink_components_hand_worked_table_expected_factor():
    # Var(z) = 4, noise 2 b^2 = 2: half of every deviation from the mean 1 is kept.
    view = make_noisy_view(
        np.array([[-1.0], [1.0], [3.0]]), np.array([5.0, 0.0]), np.array([[1.0], [0.0]]), np.ones(1)
    )
    got = Shrinkage().attack(view, np.random.default_rng(0)).candidates
    expected = [[5.0, 0.0], [6.0, 0.0], [7.0, 0.0]]
    for name in ("per_component", "joint"):
        np.testing.assert_allclose(got[name], expected, atol=1e-12)
    assert "sample_prior" not in got


def test_shrink_components_overwhelming_noise_returns_mean():
    Z = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])  # variances 4 and 0
    for filtered in (
        shrink_components(Z, np.array([9.0, 9.0]))(Z),
        filter_jointly(Z, np.array([9.0, 9.0]))(Z),
    ):
        np.testing.assert_allclose(filtered, np.tile([2.0, 0.0], (3, 1)), atol=1e-12)


def test_filter_jointly_random_table_matches_wiener_filter():
    rng = np.random.default_rng(1)
    S = np.array([[3.0, 1.2], [1.2, 2.0]])
    noise = np.array([0.5, 0.8])
    mean = np.array([1.0, -1.0])
    Z = draw_exact_sample(mean, S + np.diag(noise), 50, rng)
    expected = mean + (S @ np.linalg.inv(S + np.diag(noise)) @ (Z - mean).T).T
    np.testing.assert_allclose(filter_jointly(Z, noise)(Z), expected, atol=1e-10)


def test_filter_with_sample_exact_moments_match_conditional_mean():
    rng = np.random.default_rng(2)
    d, s, p = 4, 2, 60
    M = rng.standard_normal((d, d))
    S, mean, centre = M @ M.T, rng.standard_normal(d), rng.standard_normal(d)
    A, noise = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :s], np.array([0.5, 2.0])
    X = rng.multivariate_normal(mean, S, 20_000)
    Z = (X - centre) @ A + rng.normal(0.0, np.sqrt(noise), (20_000, s))
    got = filter_with_sample(noise, centre, A, draw_exact_sample(mean, S, p, rng))(Z)
    # The same by partitioning the precision of (x, z): -K_xx^-1 K_xz (z - E z).
    together = np.block([[S, S @ A], [A.T @ S, A.T @ S @ A + np.diag(noise)]])
    K = np.linalg.inv(together)
    gain = -np.linalg.solve(K[:d, :d], K[:d, d:])
    expected = mean + (Z - (mean - centre) @ A) @ gain.T
    np.testing.assert_allclose(got, expected, atol=1e-8)
    left_over = np.trace(np.linalg.inv(K[:d, :d]))  # posterior variance
    assert mean_square_error(X, got) == pytest.approx(left_over, rel=0.03)


def test_shrinkage_noisy_pca_beats_inverse_and_sample_helps():
    rng = np.random.default_rng(3)
    X, Z, centre, loadings = draw_noisy_pca(400, 8, 4, 0.5, rng)
    sample = X[:100]
    view = make_noisy_view(Z, centre, loadings, np.full(4, 0.5), sample=sample)
    plain = TransformInverse().attack(view, rng).candidates["inverse"]
    got = Shrinkage().attack(view, rng).candidates
    assert set(got) == {
        *("per_component", "joint", "sample_prior"),
        *("grid_prior", "own_prior", "sample_support"),
    }
    for name in got:
        assert mean_square_error(X[100:], got[name][100:]) < 0.9 * mean_square_error(
            X[100:], plain[100:]
        ), name


def test_shrinkage_small_sample_regularised():
    rng = np.random.default_rng(4)
    X, Z, centre, loadings = draw_noisy_pca(300, 10, 6, 0.2, rng)
    view = make_noisy_view(Z, centre, loadings, np.full(6, 0.2), sample=X[:5])
    got = Shrinkage().attack(view, rng).candidates["sample_prior"]
    rows = slice(5, None)
    S = np.cov(X[:5].T)
    singular = X[:5].mean(axis=0) + (
        Z - (X[:5].mean(axis=0) - centre) @ loadings
    ) @ np.linalg.solve(loadings.T @ S @ loadings + 2 * 0.2**2 * np.eye(6), loadings.T @ S)
    assert mean_square_error(X[rows], got[rows]) < 0.9 * mean_square_error(X[rows], singular[rows])
    assert mean_square_error(X[rows], got[rows]) < 0.5 * mean_square_error(
        X[rows], np.tile(X[:5].mean(axis=0), (295, 1))
    )


def test_shrinkage_narrow_bounds_estimates_inside():
    rng = np.random.default_rng(5)
    _, Z, centre, loadings = draw_noisy_pca(100, 5, 3, 0.5, rng)
    view = make_noisy_view(Z, centre, loadings, np.full(3, 0.5), bound=1.0)
    for X_hat in Shrinkage().attack(view, rng).candidates.values():
        assert np.abs(X_hat).max() == 1.0


def test_shrinkage_original_space_same_estimates():
    rng = np.random.default_rng(6)
    _, Z, centre, loadings = draw_noisy_pca(50, 5, 3, 0.5, rng)
    view = make_noisy_view(Z, centre, loadings, np.full(3, 0.5))
    back = replace(
        view,
        Y=centre + Z @ np.linalg.pinv(loadings),
        public=replace(view.public, space="original"),
    )
    one, two = (Shrinkage().attack(v, np.random.default_rng(0)).candidates for v in (view, back))
    for name in one:
        np.testing.assert_allclose(one[name], two[name], atol=1e-9)


def test_shrinkage_without_scale_or_known_distribution_not_applicable():
    view = make_noisy_view(np.ones((3, 1)), np.zeros(2), np.ones((2, 1)), None)
    with pytest.raises(NotApplicable, match="shrinkage needs a published scale of the noise"):
        Shrinkage().attack(view, np.random.default_rng(0))
    other = replace(view, public=replace(view.public, scales=np.ones(1), law="secret"))
    with pytest.raises(NotApplicable, match="no noise distribution"):
        Shrinkage().attack(other, np.random.default_rng(0))


def test_stretch_to_covariance_filtered_rows_covariance_of_signal():
    rng = np.random.default_rng(13)
    S, noise = np.array([[3.0, 1.2], [1.2, 2.0]]), np.array([0.5, 0.8])
    Z = draw_exact_sample(np.ones(2), S + np.diag(noise), 60, rng)
    np.testing.assert_allclose(
        np.cov(stretch_to_covariance(filter_jointly(Z, noise), Z, noise)(Z).T), S, atol=1e-9
    )


def test_kernel_prior_full_bandwidth_near_linear_estimate():
    rng = np.random.default_rng(12)
    X, noise = draw_exact_sample(np.zeros(2), np.eye(2), 40, rng), np.full(2, 0.5)
    Z = rng.normal(0, 1, (9, 2))
    prior = KernelPrior(
        X, X, KnownNoise(find_distribution("normal"), np.sqrt(noise)), bandwidth=0.9999
    )
    linear = filter_with_sample(noise, np.zeros(2), np.eye(2), X)(Z)
    np.testing.assert_allclose(prior.posterior_mean(Z), linear, atol=0.02)


def draw_clusters(n: int, rng: np.random.Generator):
    """Records in a few narrow groups, in twelve columns of [0, 1]."""
    centres = np.random.default_rng(99).uniform(0.1, 0.9, (12, 12))
    return centres[rng.integers(0, 12, n)] + rng.normal(0, 0.02, (n, 12))


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("law", ["laplace", "student_t"])
def test_shrinkage_grouped_records_wide_noise_recovered(law, seed):
    rng = np.random.default_rng(seed)
    X, b = draw_clusters(400, rng), 0.1
    noise = rng.laplace(0, b, X.shape) if law == "laplace" else b * rng.standard_t(2, X.shape)
    d = X.shape[1]
    view = make_noisy_view(
        X + noise, np.full(d, 0.5), np.eye(d), np.full(d, b), sample=draw_clusters(90, rng)
    )
    facts = {"nu": 2.0} if law == "student_t" else {}
    public = replace(view.public, law=law, space="original", facts=facts)
    got = Shrinkage().attack(replace(view, public=public), rng).candidates
    hit = {
        name: np.mean(np.linalg.norm(h - X, axis=1) <= 0.1 * np.linalg.norm(X, axis=1))
        for name, h in got.items()
    }
    assert hit["sample_support"] >= 0.9, hit
    if law == "laplace":
        assert max(hit["joint"], hit["sample_prior"]) < 0.3, hit
        assert hit["own_prior"] > 0.5, hit
    else:
        assert set(hit) == {"grid_prior", "own_prior", "sample_support"}


@pytest.mark.parametrize("law", SAMPLED_DISTRIBUTIONS)
def test_shrinkage_pure_noise_no_gain(law):
    rng = np.random.default_rng(15)
    X = rng.random((200, 4))
    view = make_noisy_view(rng.normal(0, 3, X.shape), np.full(4, 0.5), np.eye(4), np.full(4, 3.0))
    facts = {"nu": 3.0} if law == "student_t" else {}
    schema = Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(4)))
    view = replace(view, public=replace(view.public, law=law, facts=facts), schema=schema)
    plain = mean_square_error(X, np.tile(X.mean(axis=0), (200, 1)))
    for name, X_hat in Shrinkage().attack(view, rng).candidates.items():
        assert mean_square_error(X, X_hat) > 0.97 * plain, name


@pytest.mark.parametrize("n", [1, 3])
def test_shrinkage_tiny_and_constant_releases_finite_values(n):
    view = make_noisy_view(np.ones((n, 2)), np.zeros(3), np.eye(3)[:, :2], np.array([0.0, 0.1]))
    got = Shrinkage().attack(view, np.random.default_rng(0)).candidates
    for name, X_hat in got.items():
        assert X_hat.shape == (n, 3)
        np.testing.assert_allclose(X_hat[:, :2], 1.0, atol=1e-6, err_msg=name)


def test_shrinkage_shuffled_rows_same_estimates():
    rng = np.random.default_rng(16)
    X, Z, centre, loadings = draw_noisy_pca(120, 5, 3, 0.5, rng)
    view = make_noisy_view(Z, centre, loadings, np.full(3, 0.5), sample=X[:30])
    order = rng.permutation(120)
    one, two = (
        Shrinkage().attack(v, np.random.default_rng(0)).candidates
        for v in (view, replace(view, Y=Z[order]))
    )
    for name in one:
        np.testing.assert_allclose(two[name], one[name][order], atol=1e-8, err_msg=name)


def test_find_score_ranges_any_loadings_hold_every_corner():
    rng = np.random.default_rng(17)
    loadings = rng.normal(0, 1, (3, 2))
    view = make_noisy_view(np.zeros((1, 2)), np.full(3, 0.2), loadings, np.ones(2), bound=1.0)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    scores = (corners - 0.2) @ loadings
    np.testing.assert_allclose(
        find_score_ranges(view), np.stack([scores.min(axis=0), scores.max(axis=0)], axis=1)
    )
    assert read_noise(view.public).has_variance
