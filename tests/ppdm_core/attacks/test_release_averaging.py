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
from ppdm_core.numerics.distributions import find_distribution
from tests.support.views import make_view

LAWS = {
    "normal": stats.norm(),
    "laplace": stats.laplace(),
    "logistic": stats.logistic(),
    "uniform": stats.uniform(-1, 2),
    "student_t": stats.t(5),
}


def public(law: str, b: float, d: int, loadings=None, space="original") -> PublicParameters:
    facts = {"nu": 5.0} if law == "student_t" else {}
    L = np.eye(d) if loadings is None else loadings
    scales = np.full(L.shape[1], b)
    return PublicParameters("noise", space, (), np.full(d, 0.5), L, law, scales, facts=facts)


def dense(Y: np.ndarray, what: PublicParameters) -> EarlierRows:
    """A version of every row, but for those of NaN alone."""
    rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
    return EarlierRows(rows, Y[rows], what)


def draws_of(U: np.ndarray, scale: float) -> RowDraws:
    """From (v, m, s), NaN where there is none."""
    v, m, s = U.shape
    Z, row = U.reshape(v * m, s), np.tile(np.arange(m), v)
    order = np.argsort(row, kind="stable")
    ones = np.ones((v * m, s))
    return RowDraws(m, row[order], Z[order], ones, scale * ones, np.ones(v * m, dtype=np.bool_))


def make_versions_view(versions, what: PublicParameters, d: int) -> AttackerView:
    first, *rest = versions
    earlier = tuple(dense(Y, what) for Y in rest)
    return make_view(first, d=d, public=what, earlier_releases=earlier)


def tables(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(ReleaseAveraging().attack(view, np.random.default_rng(0)).candidates)


def error(X_hat: np.ndarray, X: np.ndarray) -> float:
    return float(np.sqrt(np.mean((X_hat - X) ** 2)))


def test_one_version_is_what_there_is():
    got = tables(make_versions_view([np.array([[0.1], [0.4]])], public("uniform", 0.1, 1), 1))
    for name in ("mean", "median", "likeliest"):
        np.testing.assert_allclose(got[name], [[0.1], [0.4]])


def test_hand_worked_versions():
    versions = [np.array([[0.1], [0.4]]), np.array([[0.2], [np.nan]]), np.array([[0.6], [0.8]])]
    got = tables(make_versions_view(versions, public("laplace", 0.1, 1), 1))
    np.testing.assert_allclose(got["mean"], [[0.3], [0.6]])
    np.testing.assert_allclose(got["median"], [[0.2], [0.6]])
    np.testing.assert_allclose(got["likeliest"], got["median"])
    middle = tables(make_versions_view(versions, public("uniform", 0.3, 1), 1))["likeliest"]
    np.testing.assert_allclose(middle, [[0.35], [0.6]])


def test_the_same_draw_twice_counts_once():
    one, two = np.array([[0.1, 0.3]]), np.array([[0.5, 0.3]])
    got = tables(make_versions_view([one, one, one.copy(), two], public("normal", 0.1, 2), 2))
    np.testing.assert_allclose(got["mean"], [[0.3, 0.3]])


@pytest.mark.parametrize("law", ["student_t", "logistic"])
def test_likeliest_value_against_an_optimiser(law):
    rng = np.random.default_rng(1)
    U = LAWS[law].rvs((7, 4, 3), random_state=2) * 0.2 + rng.uniform(0, 1, (4, 3))
    U[2, 1] = np.nan
    nu = 5.0 if law == "student_t" else None
    got = estimate_likeliest(draws_of(U, 0.2), find_distribution(law, nu))
    for i in range(4):
        for j in range(3):
            u = U[np.isfinite(U[:, i, j]), i, j]

            def surprise(x, u=u):
                return -np.sum(LAWS[law].logpdf((u - x) / 0.2))

            best = optimize.minimize_scalar(surprise, bounds=(u.min(), u.max()), method="bounded")
            assert surprise(got[i, j]) <= best.fun + 1e-6


def test_median_against_numpy():
    U = np.random.default_rng(3).uniform(0, 1, (6, 5, 4))
    U[1, 2], U[4, 2], U[0, 3] = np.nan, np.nan, np.nan
    np.testing.assert_allclose(draws_of(U, 1.0).weighted_median(), np.nanmedian(U, axis=0))


@pytest.mark.parametrize("law", sorted(LAWS))
@pytest.mark.parametrize("seed", range(3))
def test_sixteen_versions_give_the_records_away(law, seed):
    rng = np.random.default_rng(seed)
    X, b = rng.uniform(0.2, 0.8, (150, 4)), 0.1
    noise = LAWS[law].rvs((16, 150, 4), random_state=rng) * b
    got = tables(make_versions_view(list(X + noise), public(law, b, 4), 4))
    assert {"mean", "median", "likeliest", "shrunk", "shrinkage/joint"} <= set(got)
    single = error(X + noise[0], X)
    assert error(got["mean"], X) < 0.35 * single
    assert error(got["likeliest"], X) < 1.1 * error(got["mean"], X)
    assert error(got["shrunk"], X) < 1.02 * error(got["likeliest"], X)
    assert (
        np.mean(np.linalg.norm(got["shrunk"] - X, axis=1) < 0.15 * np.linalg.norm(X, axis=1)) > 0.9
    )


def test_the_law_beats_the_mean_where_it_should():
    rng = np.random.default_rng(4)
    X = rng.uniform(0.3, 0.7, (400, 3))
    for law in ("laplace", "uniform"):
        noise = LAWS[law].rvs((15, 400, 3), random_state=rng) * 0.05
        got = tables(make_versions_view(list(X + noise), public(law, 0.05, 3), 3))
        assert error(got["likeliest"], X) < 0.9 * error(got["mean"], X), law


@pytest.mark.parametrize("law", ["laplace", "logistic", "student_t"])
def test_what_is_left_of_the_noise_is_what_the_filter_counts_on(law):
    noise = LAWS[law].rvs((101, 300, 2), random_state=5)
    one = find_distribution(law, 5.0 if law == "student_t" else None)
    left = estimate_likeliest(draws_of(noise, 1.0), one).var() * 101
    assert left == pytest.approx(variance_ratio(one) * one.variance, rel=0.2)


@pytest.mark.parametrize("space", ["components", "original"])
def test_components_are_averaged_and_mapped_back(space):
    rng = np.random.default_rng(6)
    L = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    X = rng.uniform(0.3, 0.7, (100, 5))
    Z = (X - 0.5) @ L + rng.laplace(0, 0.05, (9, 100, 5))
    Y = Z if space == "components" else 0.5 + Z @ L.T
    got = tables(make_versions_view(list(Y), public("laplace", 0.05, 5, L, space), 5))
    expected = 0.5 + (np.median(Z, axis=0)) @ L.T
    np.testing.assert_allclose(got["likeliest"], np.clip(expected, 0, 1), atol=1e-6)


def test_no_versions_of_anybody_else_help():
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 1, (200, 3))
    versions = [rng.permutation(X) + rng.laplace(0, 0.01, X.shape) for _ in range(5)]
    base = error(np.tile(X.mean(axis=0), (200, 1)), X)
    for name, X_hat in tables(make_versions_view(versions, public("laplace", 0.01, 3), 3)).items():
        assert error(X_hat, X) > 0.95 * base, name


def test_a_law_without_a_variance_is_not_filtered():
    rng = np.random.default_rng(8)
    X = rng.uniform(0.3, 0.7, (100, 2))
    what = replace(public("student_t", 0.05, 2), facts={"nu": 1.0})
    versions = list(X + 0.05 * rng.standard_cauchy((9, 100, 2)))
    got = tables(make_versions_view(versions, what, 2))
    assert set(got) == {"mean", "median", "likeliest"}
    assert error(got["likeliest"], X) < 0.5 * error(got["mean"], X)


def test_rows_permuted_give_answers_permuted_and_nothing_is_written():
    rng = np.random.default_rng(9)
    versions = [rng.uniform(0, 1, (20, 3)) for _ in range(3)]
    versions[1][4] = np.nan
    order = rng.permutation(20)
    for version in versions:
        version.flags.writeable = False
    what = public("logistic", 0.1, 3)
    one = tables(make_versions_view(versions, what, 3))
    two = tables(make_versions_view([version[order] for version in versions], what, 3))
    for name, X_hat in one.items():
        np.testing.assert_allclose(X_hat[order], two[name], atol=1e-12)


@pytest.mark.parametrize("n", [1, 3])
def test_tiny_tables_and_constant_columns(n):
    versions = [np.full((n, 2), 0.5), np.full((n, 2), 0.6)]
    for X_hat in tables(make_versions_view(versions, public("normal", 0.1, 2), 2)).values():
        np.testing.assert_allclose(X_hat, 0.55, atol=1e-9)


def test_without_noise_only_mean_and_median_in_the_original_columns():
    versions = [np.array([[0.1]]), np.array([[0.3]])]
    got = tables(make_versions_view(versions, PublicParameters("other", "original", ()), 1))
    assert {name: X_hat.item() for name, X_hat in got.items()} == {
        "mean": pytest.approx(0.2),
        "median": pytest.approx(0.2),
    }


def test_without_peoples_rows_or_a_map_it_does_not_apply():
    view = make_versions_view([np.ones((3, 2))], public("normal", 0.1, 2), 2)
    with pytest.raises(NotApplicable, match="release_averaging needs releases whose rows"):
        tables(replace(view, earlier_releases=None))
    secret = replace(
        view,
        public=PublicParameters("rotation", "rotated", ()),
        earlier_releases=(dense(np.zeros((3, 2)), view.public),),
    )
    with pytest.raises(NotApplicable, match="a published linear map"):
        tables(secret)


def with_versions(
    now: PublicParameters, Y: float, *earlier: tuple[float, PublicParameters]
) -> AttackerView:
    view = make_versions_view([np.array([[Y]])], now, 1)
    return replace(
        view, earlier_releases=tuple(dense(np.array([[y]]), what) for y, what in earlier)
    )


def test_hand_worked_weights_of_noisier_versions():
    """Scales 1, 2 and 2 (of 0.1): precisions 4 : 1 : 1, weights of the median 2 : 1 : 1."""
    now, then = public("laplace", 0.1, 1), public("laplace", 0.2, 1)
    got = tables(with_versions(now, 0.2, (0.8, then), (0.5, then)))
    assert got["mean"].item() == pytest.approx((4 * 0.2 + 0.8 + 0.5) / 6)
    assert got["median"].item() == pytest.approx(0.5)
    assert got["likeliest"].item() == pytest.approx((0.2 + 0.5) / 2)  # 2 below, 2 above
    exact = tables(with_versions(public("normal", 0.1, 1), 0.2, (0.8, public("normal", 0.2, 1))))
    assert exact["likeliest"].item() == pytest.approx((4 * 0.2 + 0.8) / 5)
    box = tables(with_versions(public("uniform", 0.1, 1), 0.2, (0.4, public("uniform", 0.3, 1))))
    assert box["likeliest"].item() == pytest.approx(0.2)  # [0.1, 0.3] and [0.1, 0.7]


def test_versions_of_another_map_are_brought_to_this_one():
    """Then twice the component, with twice the noise: the same information."""
    now = public("laplace", 0.1, 1, np.array([[1.0]]), "components")
    then = replace(now, loadings=np.array([[2.0]]), scales=np.array([0.2]))
    got = tables(with_versions(now, 0.1, (0.6, then)))  # 0.5 + 0.1, and 0.5 + 0.3
    assert got["mean"].item() == pytest.approx(0.7)
    assert got["likeliest"].item() == pytest.approx(0.6)  # the law is known of the first alone


def test_versions_that_cannot_be_compared_are_left_out():
    now = public("laplace", 0.1, 1)
    got = tables(with_versions(now, 0.3, (99.0, PublicParameters("rotation", "rotated", ()))))
    assert got["mean"].item() == pytest.approx(0.3)


def test_several_versions_give_more_away_than_the_strongest_attack_on_one():
    """Few kinds of people, much noise: a prior tells more than any filter."""
    rng = np.random.default_rng(11)
    X = rng.uniform(0, 1, (8, 6))[rng.integers(0, 8, 400)]
    versions = list(X + rng.laplace(0, 0.5, (5, *X.shape)))
    what = public("laplace", 0.5, 6)
    alone = Shrinkage().attack(make_versions_view(versions[:1], what, 6), np.random.default_rng(0))
    single = min(error(X_hat, X) for X_hat in alone.candidates.values())
    together = min(
        error(X_hat, X) for X_hat in tables(make_versions_view(versions, what, 6)).values()
    )
    assert together < 0.8 * single
