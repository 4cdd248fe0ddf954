from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from ppdm_core.attacks._earlier_draws import RowDraws
from ppdm_core.attacks.release_averaging import ReleaseAveraging, estimate_likeliest, variance_ratio
from ppdm_core.attacks.shrinkage import Shrinkage
from ppdm_core.model.attacker import AttackerView, EarlierRows
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.noise_distributions import find_distribution
from tests.support.views import make_view

LAWS = {
    "normal": stats.norm(),
    "laplace": stats.laplace(),
    "logistic": stats.logistic(),
    "uniform": stats.uniform(-1, 2),
    "student_t": stats.t(5),
}


def describe_noise(law: str, b: float, d: int, loadings=None, space="original") -> PublicParameters:
    facts = {"nu": 5.0} if law == "student_t" else {}
    L = np.eye(d) if loadings is None else loadings
    scales = np.full(L.shape[1], b)
    return PublicParameters("noise", space, (), np.full(d, 0.5), L, law, scales, facts=facts)


def make_earlier_rows(Y: np.ndarray, what: PublicParameters) -> EarlierRows:
    """A version of every row, but for those of NaN alone."""
    rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
    return EarlierRows(rows, Y[rows], what)


def make_draws(U: np.ndarray, scale: float) -> RowDraws:
    """From (v, m, s), NaN where there is none."""
    v, m, s = U.shape
    Z, row = U.reshape(v * m, s), np.tile(np.arange(m), v)
    order = np.argsort(row, kind="stable")
    ones = np.ones((v * m, s))
    return RowDraws(m, row[order], Z[order], ones, scale * ones, np.ones(v * m, dtype=np.bool_))


def make_versions_view(versions, what: PublicParameters, d: int) -> AttackerView:
    first, *rest = versions
    earlier = tuple(make_earlier_rows(Y, what) for Y in rest)
    return make_view(first, d=d, public=what, earlier_releases=earlier)


def run_attack(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(ReleaseAveraging().attack(view, np.random.default_rng(0)).candidates)


def root_mean_square_error(X_hat: np.ndarray, X: np.ndarray) -> float:
    return float(np.sqrt(np.mean((X_hat - X) ** 2)))


def test_release_averaging_one_version_returned_unchanged():
    got = run_attack(
        make_versions_view([np.array([[0.1], [0.4]])], describe_noise("uniform", 0.1, 1), 1)
    )
    for name in ("mean", "median", "likeliest"):
        np.testing.assert_allclose(got[name], [[0.1], [0.4]])


def test_release_averaging_hand_worked_versions_expected_values():
    versions = [np.array([[0.1], [0.4]]), np.array([[0.2], [np.nan]]), np.array([[0.6], [0.8]])]
    got = run_attack(make_versions_view(versions, describe_noise("laplace", 0.1, 1), 1))
    np.testing.assert_allclose(got["mean"], [[0.3], [0.6]])
    np.testing.assert_allclose(got["median"], [[0.2], [0.6]])
    np.testing.assert_allclose(got["likeliest"], got["median"])
    middle = run_attack(make_versions_view(versions, describe_noise("uniform", 0.3, 1), 1))[
        "likeliest"
    ]
    np.testing.assert_allclose(middle, [[0.35], [0.6]])


def test_release_averaging_repeated_draw_counts_once():
    one, two = np.array([[0.1, 0.3]]), np.array([[0.5, 0.3]])
    got = run_attack(
        make_versions_view([one, one, one.copy(), two], describe_noise("normal", 0.1, 2), 2)
    )
    np.testing.assert_allclose(got["mean"], [[0.3, 0.3]])


@pytest.mark.parametrize("law", ["student_t", "logistic"])
def test_estimate_likeliest_each_distribution_matches_optimiser(law):
    rng = np.random.default_rng(1)
    U = LAWS[law].rvs((7, 4, 3), random_state=2) * 0.2 + rng.uniform(0, 1, (4, 3))
    U[2, 1] = np.nan
    nu = 5.0 if law == "student_t" else None
    got = estimate_likeliest(make_draws(U, 0.2), find_distribution(law, nu))
    for i in range(4):
        for j in range(3):
            u = U[np.isfinite(U[:, i, j]), i, j]

            def surprise(x, u=u):
                return -np.sum(LAWS[law].logpdf((u - x) / 0.2))

            best = optimize.minimize_scalar(surprise, bounds=(u.min(), u.max()), method="bounded")
            assert surprise(got[i, j]) <= best.fun + 1e-6


def test_weighted_median_random_draws_match_numpy():
    U = np.random.default_rng(3).uniform(0, 1, (6, 5, 4))
    U[1, 2], U[4, 2], U[0, 3] = np.nan, np.nan, np.nan
    np.testing.assert_allclose(make_draws(U, 1.0).weighted_median(), np.nanmedian(U, axis=0))


@pytest.mark.parametrize("law", sorted(LAWS))
@pytest.mark.parametrize("seed", range(3))
def test_release_averaging_sixteen_versions_recovers_records(law, seed):
    rng = np.random.default_rng(seed)
    X, b = rng.uniform(0.2, 0.8, (150, 4)), 0.1
    noise = LAWS[law].rvs((16, 150, 4), random_state=rng) * b
    got = run_attack(make_versions_view(list(X + noise), describe_noise(law, b, 4), 4))
    assert {"mean", "median", "likeliest", "shrunk", "shrinkage/joint"} <= set(got)
    single = root_mean_square_error(X + noise[0], X)
    assert root_mean_square_error(got["mean"], X) < 0.35 * single
    assert root_mean_square_error(got["likeliest"], X) < 1.1 * root_mean_square_error(
        got["mean"], X
    )
    assert root_mean_square_error(got["shrunk"], X) < 1.02 * root_mean_square_error(
        got["likeliest"], X
    )
    assert (
        np.mean(np.linalg.norm(got["shrunk"] - X, axis=1) < 0.15 * np.linalg.norm(X, axis=1)) > 0.9
    )


def test_release_averaging_known_distribution_beats_mean():
    rng = np.random.default_rng(4)
    X = rng.uniform(0.3, 0.7, (400, 3))
    for law in ("laplace", "uniform"):
        noise = LAWS[law].rvs((15, 400, 3), random_state=rng) * 0.05
        got = run_attack(make_versions_view(list(X + noise), describe_noise(law, 0.05, 3), 3))
        assert root_mean_square_error(got["likeliest"], X) < 0.9 * root_mean_square_error(
            got["mean"], X
        ), law


@pytest.mark.parametrize("law", ["laplace", "logistic", "student_t"])
def test_variance_ratio_each_distribution_matches_simulation(law):
    noise = LAWS[law].rvs((101, 300, 2), random_state=5)
    one = find_distribution(law, 5.0 if law == "student_t" else None)
    left = estimate_likeliest(make_draws(noise, 1.0), one).var() * 101
    assert left == pytest.approx(variance_ratio(one) * one.variance, rel=0.2)


@pytest.mark.parametrize("space", ["components", "original"])
def test_release_averaging_components_averaged_and_mapped_back(space):
    rng = np.random.default_rng(6)
    L = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    X = rng.uniform(0.3, 0.7, (100, 5))
    Z = (X - 0.5) @ L + rng.laplace(0, 0.05, (9, 100, 5))
    Y = Z if space == "components" else 0.5 + Z @ L.T
    got = run_attack(make_versions_view(list(Y), describe_noise("laplace", 0.05, 5, L, space), 5))
    expected = 0.5 + (np.median(Z, axis=0)) @ L.T
    np.testing.assert_allclose(got["likeliest"], np.clip(expected, 0, 1), atol=1e-6)


def test_release_averaging_versions_of_other_persons_no_gain():
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 1, (200, 3))
    versions = [rng.permutation(X) + rng.laplace(0, 0.01, X.shape) for _ in range(5)]
    base = root_mean_square_error(np.tile(X.mean(axis=0), (200, 1)), X)
    for name, X_hat in run_attack(
        make_versions_view(versions, describe_noise("laplace", 0.01, 3), 3)
    ).items():
        assert root_mean_square_error(X_hat, X) > 0.95 * base, name


def test_release_averaging_distribution_without_variance_not_filtered():
    rng = np.random.default_rng(8)
    X = rng.uniform(0.3, 0.7, (100, 2))
    what = replace(describe_noise("student_t", 0.05, 2), facts={"nu": 1.0})
    versions = list(X + 0.05 * rng.standard_cauchy((9, 100, 2)))
    got = run_attack(make_versions_view(versions, what, 2))
    assert set(got) == {"mean", "median", "likeliest"}
    assert root_mean_square_error(got["likeliest"], X) < 0.5 * root_mean_square_error(
        got["mean"], X
    )


def test_release_averaging_shuffled_rows_same_estimates_and_view_unchanged():
    rng = np.random.default_rng(9)
    versions = [rng.uniform(0, 1, (20, 3)) for _ in range(3)]
    versions[1][4] = np.nan
    order = rng.permutation(20)
    for version in versions:
        version.flags.writeable = False
    what = describe_noise("logistic", 0.1, 3)
    one = run_attack(make_versions_view(versions, what, 3))
    two = run_attack(make_versions_view([version[order] for version in versions], what, 3))
    for name, X_hat in one.items():
        np.testing.assert_allclose(X_hat[order], two[name], atol=1e-12)


@pytest.mark.parametrize("n", [1, 3])
def test_release_averaging_tiny_and_constant_tables_finite_values(n):
    versions = [np.full((n, 2), 0.5), np.full((n, 2), 0.6)]
    for X_hat in run_attack(
        make_versions_view(versions, describe_noise("normal", 0.1, 2), 2)
    ).values():
        np.testing.assert_allclose(X_hat, 0.55, atol=1e-9)


def test_release_averaging_without_noise_mean_and_median_only():
    versions = [np.array([[0.1]]), np.array([[0.3]])]
    got = run_attack(make_versions_view(versions, PublicParameters("other", "original", ()), 1))
    assert {name: X_hat.item() for name, X_hat in got.items()} == {
        "mean": pytest.approx(0.2),
        "median": pytest.approx(0.2),
    }


def test_release_averaging_without_matched_rows_or_map_not_applicable():
    view = make_versions_view([np.ones((3, 2))], describe_noise("normal", 0.1, 2), 2)
    with pytest.raises(NotApplicable, match="release_averaging needs releases whose rows"):
        run_attack(replace(view, earlier_releases=None))
    secret = replace(
        view,
        public=PublicParameters("rotation", "rotated", ()),
        earlier_releases=(make_earlier_rows(np.zeros((3, 2)), view.public),),
    )
    with pytest.raises(NotApplicable, match="a published linear map"):
        run_attack(secret)


def make_single_row_view(
    now: PublicParameters, Y: float, *earlier: tuple[float, PublicParameters]
) -> AttackerView:
    view = make_versions_view([np.array([[Y]])], now, 1)
    return replace(
        view,
        earlier_releases=tuple(make_earlier_rows(np.array([[y]]), what) for y, what in earlier),
    )


def test_release_averaging_noisier_versions_expected_weights():
    """Scales 1, 2 and 2 (of 0.1): precisions 4 : 1 : 1, weights of the median 2 : 1 : 1."""
    now, then = describe_noise("laplace", 0.1, 1), describe_noise("laplace", 0.2, 1)
    got = run_attack(make_single_row_view(now, 0.2, (0.8, then), (0.5, then)))
    assert got["mean"].item() == pytest.approx((4 * 0.2 + 0.8 + 0.5) / 6)
    assert got["median"].item() == pytest.approx(0.5)
    assert got["likeliest"].item() == pytest.approx((0.2 + 0.5) / 2)  # 2 below, 2 above
    exact = run_attack(
        make_single_row_view(
            describe_noise("normal", 0.1, 1), 0.2, (0.8, describe_noise("normal", 0.2, 1))
        )
    )
    assert exact["likeliest"].item() == pytest.approx((4 * 0.2 + 0.8) / 5)
    box = run_attack(
        make_single_row_view(
            describe_noise("uniform", 0.1, 1), 0.2, (0.4, describe_noise("uniform", 0.3, 1))
        )
    )
    assert box["likeliest"].item() == pytest.approx(0.2)  # [0.1, 0.3] and [0.1, 0.7]


def test_release_averaging_versions_of_other_map_converted():
    """Then twice the component, with twice the noise: the same information."""
    now = describe_noise("laplace", 0.1, 1, np.array([[1.0]]), "components")
    then = replace(now, loadings=np.array([[2.0]]), scales=np.array([0.2]))
    got = run_attack(make_single_row_view(now, 0.1, (0.6, then)))  # 0.5 + 0.1, and 0.5 + 0.3
    assert got["mean"].item() == pytest.approx(0.7)
    assert got["likeliest"].item() == pytest.approx(
        0.6
    )  # the distribution is known for the first alone


def test_release_averaging_incomparable_versions_left_out():
    now = describe_noise("laplace", 0.1, 1)
    got = run_attack(
        make_single_row_view(now, 0.3, (99.0, PublicParameters("rotation", "rotated", ())))
    )
    assert got["mean"].item() == pytest.approx(0.3)


def test_release_averaging_several_versions_beat_best_single_release_attack():
    """With few kinds of records and much noise, a prior says more than any filter."""
    rng = np.random.default_rng(11)
    X = rng.uniform(0, 1, (8, 6))[rng.integers(0, 8, 400)]
    versions = list(X + rng.laplace(0, 0.5, (5, *X.shape)))
    what = describe_noise("laplace", 0.5, 6)
    alone = Shrinkage().attack(make_versions_view(versions[:1], what, 6), np.random.default_rng(0))
    single = min(root_mean_square_error(X_hat, X) for X_hat in alone.candidates.values())
    together = min(
        root_mean_square_error(X_hat, X)
        for X_hat in run_attack(make_versions_view(versions, what, 6)).values()
    )
    assert together < 0.8 * single
