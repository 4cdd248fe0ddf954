from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.attacks.known_pairs import (
    KnownPairs,
    breach_probability,
    find_rotation,
    random_orthogonal,
)
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from tests.support.views import make_known, make_public, make_view

ESTIMATORS = ("uniform", "projection", "optimal")


def draw_rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diag(R))


def make_pairs_view(X, Y, known, *, epsilon=0.1, centre=None) -> AttackerView:
    return make_view(
        Y,
        d=X.shape[1],
        bounds=(-9.0, 9.0),
        public=make_public(Y, centre=centre),
        epsilon=epsilon,
        known=make_known(X, known),
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("D", range(1, 9))
def test_breach_probability_haar_matrices_match_monte_carlo(D, estimator):
    rng = np.random.default_rng(100 * D + len(estimator))
    draws, distance = 4_000, 1.7
    Q, R = np.linalg.qr(rng.standard_normal((draws, D, D)))
    P = Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]
    truth = np.zeros(D)
    truth[0] = distance
    for share in (0.4, 0.8, 1.3, 1.8, 2.1):
        radius = share * distance
        kept = {
            "uniform": 1.0,
            "projection": 0.0,
            "optimal": np.sqrt(max(1.0 - share**2, 0.0)),
        }[estimator]
        error = np.linalg.norm(kept * P @ truth - truth, axis=1)
        p = float(breach_probability(distance, radius, D, estimator))
        slack = 4 * np.sqrt(p * (1 - p) / draws)
        assert abs(np.mean(error <= radius) - p) <= slack, (share, p)


def test_breach_probability_two_and_three_dimensions_match_paper():
    c = np.array([0.1, 0.5, 1.0, 1.9])
    np.testing.assert_allclose(breach_probability(1.0, c, 2), 2 / np.pi * np.arcsin(c / 2))
    np.testing.assert_allclose(breach_probability(1.0, c, 3), (c / 2) ** 2)


@pytest.mark.parametrize(
    ("distance", "radius", "freedom", "uniform", "projection", "optimal"),
    [
        (1.0, 0.1, 0, 1.0, 1.0, 1.0),  # nothing is left free
        (0.0, 0.0, 4, 1.0, 1.0, 1.0),  # in the span
        (1.0, 0.0, 1, 0.5, 0.0, 0.5),  # a sign
        (1.0, 2.0, 5, 1.0, 1.0, 1.0),  # the ball holds the complete sphere
        (1.0, 1.0, 2, 1 / 3, 1.0, 1.0),  # arcsin(1/2) = pi/6
        (1.0, 1.0, 3, 0.25, 1.0, 1.0),
        (1.0, 0.6, 3, 0.09, 0.0, 0.1),  # cap of height 1 - 0.8: (1 - cos) / 2
        (1.0, 0.5, 2, 2 / np.pi * np.arcsin(0.25), 0.0, 1 / 6),  # arcsin(1/2) / pi
    ],
)
def test_breach_probability_hand_worked_table_expected_values(
    distance, radius, freedom, uniform, projection, optimal
):
    got = [float(breach_probability(distance, radius, freedom, e)) for e in ESTIMATORS]
    np.testing.assert_allclose(got, [uniform, projection, optimal], atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    distance=st.floats(0, 10),
    radius=st.floats(0, 10),
    more=st.floats(0, 5),
    D=st.integers(0, 40),
)
def test_breach_probability_optimal_never_below_others(distance, radius, more, D):
    p = {e: float(breach_probability(distance, radius, D, e)) for e in ESTIMATORS}
    wider = {e: float(breach_probability(distance, radius + more, D, e)) for e in ESTIMATORS}
    for e in ESTIMATORS:
        assert 0.0 <= p[e] <= wider[e] + 1e-12 <= 1.0 + 1e-12
        assert p["optimal"] >= p[e] - 1e-12


def test_random_orthogonal_many_draws_no_preferred_direction():
    rng = np.random.default_rng(5)
    Q = np.array([random_orthogonal(3, rng) for _ in range(2_000)])
    np.testing.assert_allclose(
        Q @ Q.transpose(0, 2, 1), np.tile(np.eye(3), (2_000, 1, 1)), atol=1e-12
    )
    # An entry has mean 0 and variance 1/3; QR without the signs of R is far from that.
    assert np.abs(Q.mean(axis=0)).max() < 4.5 * np.sqrt(1 / 3 / 2_000)
    assert 0.45 < np.mean(np.linalg.det(Q) > 0) < 0.55


@pytest.mark.parametrize("translated", [False, True])
def test_known_pairs_enough_known_records_recovers_all(translated):
    rng = np.random.default_rng(1)
    X = rng.normal(2.0, 1.0, (60, 5))
    Y = X @ draw_rotation(5, rng).T + (np.arange(5.0) if translated else 0.0)
    known = np.arange(6 if translated else 5)
    view = make_pairs_view(X, Y, known)
    estimate = KnownPairs().attack(view, rng)
    for name in ESTIMATORS:
        np.testing.assert_allclose(estimate.candidates[name], X, atol=1e-8)
        assert estimate.claims[name].min() == 1.0
    if translated:  # it fits a translation too, which costs one more pair
        np.testing.assert_allclose(estimate.candidates["procrustes"], X, atol=1e-6)


def test_known_pairs_one_translated_pair_too_few_sign_unknown():
    rng = np.random.default_rng(2)
    X = rng.normal(2.0, 1.0, (60, 5))
    view = make_pairs_view(X, X @ draw_rotation(5, rng).T - 3.0, np.arange(5))
    frame = find_rotation(view, view.known)
    assert frame.freedom == 1
    assert not frame.fixed_origin
    claims = KnownPairs().attack(view, rng).claims["uniform"]
    assert set(np.unique(claims)) <= {0.5, 1.0}
    assert 0.5 in claims


def test_known_pairs_map_about_published_centre_found():
    rng = np.random.default_rng(3)
    X, centre = rng.uniform(0, 1, (40, 4)), np.full(4, 0.5)
    view = make_pairs_view(X, (X - centre) @ draw_rotation(4, rng).T, np.arange(4), centre=centre)
    assert find_rotation(view, view.known).freedom == 0  # a translation would cost one pair
    np.testing.assert_allclose(KnownPairs().attack(view, rng).candidates["optimal"], X, atol=1e-8)


def test_known_pairs_dependent_known_records_count_by_rank():
    rng = np.random.default_rng(4)
    X = rng.normal(1.0, 1.0, (50, 6))
    X[3] = X[0] + X[1] - 2 * X[2]
    X[4] = 0.5 * X[0]
    view = make_pairs_view(X, X @ draw_rotation(6, rng).T, np.arange(5))
    assert find_rotation(view, view.known).freedom == 3
    claims = KnownPairs().attack(view, rng).claims["uniform"]
    span = np.linalg.svd(X[:3], full_matrices=False)[2]
    distance = np.linalg.norm(X - X @ span.T @ span, axis=1)
    expected = breach_probability(distance, 0.1 * np.linalg.norm(X, axis=1), 3)
    np.testing.assert_allclose(claims[5:], expected[5:], rtol=1e-6)


def test_known_pairs_rotation_claims_match_breach_rate():
    rng = np.random.default_rng(6)
    X = rng.normal(0.5, 1.0, (200, 5))
    epsilon, surplus = 0.5, {name: [] for name in ESTIMATORS}
    for _ in range(80):
        view = make_pairs_view(X, X @ draw_rotation(5, rng).T, np.arange(2), epsilon=epsilon)
        estimate = KnownPairs().attack(view, rng)
        for name in ESTIMATORS:
            error = np.linalg.norm(estimate.candidates[name] - X, axis=1)
            hit = error <= epsilon * np.linalg.norm(X, axis=1) * (1 + 1e-9)
            surplus[name].append(hit[2:].mean() - estimate.claims[name][2:].mean())
    np.testing.assert_allclose(surplus["projection"], 0.0, atol=0.006)
    for name in ("uniform", "optimal"):
        values = np.array(surplus[name])
        assert abs(values.mean()) < 4 * values.std(ddof=1) / np.sqrt(len(values)), name
    assert 0.05 < estimate.claims["uniform"][2:].mean() < estimate.claims["optimal"][2:].mean()


def test_known_pairs_fewer_released_columns_padded():
    rng = np.random.default_rng(7)
    basis = draw_rotation(4, rng)[:, :2]
    X = rng.normal(1.0, 1.0, (30, 2)) @ basis.T  # a plane in four dimensions
    view = make_pairs_view(X, X @ basis, np.arange(2))
    np.testing.assert_allclose(KnownPairs().attack(view, rng).candidates["uniform"], X, atol=1e-8)


def test_known_pairs_noisy_release_no_rotation_but_beats_mean():
    rng = np.random.default_rng(8)
    X = rng.normal(0.0, 1.0, (300, 2)) @ rng.normal(0.0, 1.0, (2, 10)) + 3.0
    X += rng.normal(0.0, 0.05, X.shape)
    Y = X @ draw_rotation(10, rng).T + rng.normal(0.0, 0.1, X.shape)
    view = make_pairs_view(X, Y, np.arange(8))  # k < s
    estimate = KnownPairs().attack(view, rng)
    assert set(estimate.candidates) == set(estimate.claims) == {"procrustes", "regression"}
    mean_error = np.linalg.norm(X[8:] - X[:8].mean(axis=0), axis=1).mean()
    for X_hat in estimate.candidates.values():
        assert np.linalg.norm(X[8:] - X_hat[8:], axis=1).mean() < 0.25 * mean_error


@pytest.mark.parametrize("name", ["procrustes", "regression"])
def test_known_pairs_learned_claims_calibrated_and_rank_records(name):
    hits, claimed, best = [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(0.0, 1.0, (400, 5)) * rng.uniform(0.3, 2.0, (400, 1)) + 1.0
        Y = X @ draw_rotation(5, rng).T + rng.normal(0.0, 0.2, X.shape)
        estimate = KnownPairs().attack(make_pairs_view(X, Y, np.arange(30), epsilon=0.15), rng)
        error = np.linalg.norm(estimate.candidates[name] - X, axis=1)[30:]
        hit, claim = error <= 0.15 * np.linalg.norm(X[30:], axis=1), estimate.claims[name][30:]
        hits.append(hit.mean())
        claimed.append(claim.mean())
        best.append(hit[np.argsort(-claim)[:37]].mean())
    assert 0.2 < np.mean(hits) < 0.8
    assert abs(np.mean(hits) - np.mean(claimed)) < 0.08
    assert np.mean(best) > np.mean(hits) + 0.15


def test_known_pairs_one_pair_learned_claims_zero():
    rng = np.random.default_rng(13)
    X = rng.normal(1.0, 1.0, (20, 3))
    Y = X + rng.normal(0.0, 1.0, X.shape)
    claims = KnownPairs().attack(make_pairs_view(X, Y, np.array([4])), rng).claims
    for claim in claims.values():
        np.testing.assert_array_equal(np.flatnonzero(claim), [4])


def test_known_pairs_known_rows_exact_and_view_unchanged():
    rng = np.random.default_rng(11)
    X = rng.normal(1.0, 1.0, (20, 4))
    Y = X @ draw_rotation(4, rng).T
    known = np.array([7, 2])
    X.flags.writeable = Y.flags.writeable = False
    estimate = KnownPairs().attack(make_pairs_view(X, Y, known), rng)
    for X_hat in estimate.candidates.values():
        np.testing.assert_array_equal(X_hat[known], X[known])
    for claim in estimate.claims.values():
        assert (claim[known] == 1.0).all()


def test_known_pairs_without_known_records_not_applicable():
    view = make_pairs_view(np.ones((3, 2)), np.ones((3, 2)), np.array([], dtype=np.int64))
    with pytest.raises(NotApplicable, match="known_pairs needs known records"):
        KnownPairs().attack(view, np.random.default_rng(0))
