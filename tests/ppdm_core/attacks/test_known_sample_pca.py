from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.attacks._axis_signs import (
    choose_signs_jointly,
    compute_coordinate_evidence,
    mean_distances,
    sum_cross_distances,
)
from ppdm_core.attacks._rigid_registration import RigidMap, run_em, snap_to_rows
from ppdm_core.attacks._secret_map import find_origin
from ppdm_core.attacks.known_sample_pca import (
    KnownSamplePca,
    choose_best_signs,
    choose_exhaustive_signs,
    choose_hybrid_signs,
    compute_axis_evidence,
    count_affordable_rows,
    estimate_with_best_signs,
    match_axes,
)
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.views import make_public, make_view

BY_SIGNS = ("coordinate", "moments", "hybrid", "exhaustive")

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def make_sample_view(Y, sample, *, effort="standard", space="rotated", keeps=True, facts=None):
    public = make_public(Y, "any", space, preserves_distances=keeps, facts=facts or {})
    fields = {"public": public, "sample": sample, "effort": effort}
    return make_view(Y, d=sample.shape[1], bounds=(-99.0, 99.0), **fields)


def draw_skewed(rng, n, d, decay=0.7):
    """Long right tails, a variance of its own for each column, then mixed."""
    mixing = random_orthogonal(d, np.random.default_rng(d))
    return rng.gamma(1.5, 1.0, (n, d)) * decay ** np.arange(d) @ mixing


def draw_clustered_records(rng, n, d):
    """Five unequal groups in the unit cube, as a real table is."""
    fixed = np.random.default_rng(d)
    centres = fixed.random((5, d))
    group = rng.choice(5, n, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    return centres[group] + 0.05 * rng.standard_normal((n, d))


def run_attack(view, seed=0):
    return KnownSamplePca().attack(view, np.random.default_rng(seed))


def mean_error(X, X_hat):
    return np.mean(np.linalg.norm(X - X_hat, axis=1) / np.linalg.norm(X, axis=1))


def breach_rate(X, X_hat):
    return np.mean(np.linalg.norm(X - X_hat, axis=1) <= 0.1 * np.linalg.norm(X, axis=1))


def test_mean_distances_hand_worked_points_expected_means():
    # |t - 0|, |t - 1|, |t - 5| for t = -1, 1, 6
    np.testing.assert_allclose(
        mean_distances(np.array([-1.0, 1.0, 6.0]), np.array([5.0, 0.0, 1.0])),
        [(1 + 2 + 6) / 3, (1 + 0 + 4) / 3, (6 + 5 + 1) / 3],
    )


def test_sum_cross_distances_all_signs_match_brute_force():
    rng = np.random.default_rng(1)
    A, B = rng.normal(0.3, 1, (7, 5)), rng.normal(0.3, 1, (9_000, 5))  # several blocks
    free = np.array([3, 0, 4])
    terms = sum_cross_distances(A, B, free)
    for bits in product((0, 1), repeat=3):
        D = np.ones(5)
        D[free] = 1.0 - 2.0 * np.array(bits)
        wanted = np.linalg.norm((A * D)[:, None] - B, axis=2).sum()
        assert terms[sum(bit << k for k, bit in enumerate(bits))] == pytest.approx(wanted)
    chosen = choose_signs_jointly(A, B, np.ones(5), free)
    assert np.linalg.norm((A * chosen)[:, None] - B, axis=2).sum() == pytest.approx(terms.min())


def test_sum_cross_distances_more_than_twenty_signs_raises():
    with pytest.raises(ValueError, match="too many"):
        sum_cross_distances(np.ones((2, 21)), np.ones((2, 21)), np.arange(21))


def test_compute_coordinate_evidence_random_tables_match_pairwise_means():
    rng = np.random.default_rng(2)
    A, B = rng.gamma(1, 1, (20, 3)), rng.gamma(1, 1, (50, 3)) * [1, -1, 1]
    evidence = compute_coordinate_evidence(A, B)
    pairs = np.abs(-A[:, None] - B) - np.abs(A[:, None] - B)
    np.testing.assert_allclose(evidence.difference, pairs.mean(axis=(0, 1)))
    assert evidence.signs.tolist() == [1, -1, 1]
    assert np.abs(evidence.z).min() > 3


def test_compute_coordinate_evidence_symmetric_distribution_standard_normal():
    rng = np.random.default_rng(3)
    z = np.concatenate(
        [
            compute_coordinate_evidence(
                rng.standard_normal((60, 20)), rng.standard_normal((400, 20))
            ).z
            for _ in range(30)
        ]
    )
    assert abs(z.mean()) < 0.15
    assert np.mean(np.abs(z) > 3) < 0.01
    assert 0.3 < z.std() < 1.1  # the error counts what the two tables share twice


def test_count_affordable_rows_given_work_expected_rows():
    assert count_affordable_rows(12, 250, 5_000, 1e10) == 5_000
    assert count_affordable_rows(12, 250, 100_000, 2e9) == 1953  # 2e9 / 4096 / 250
    assert count_affordable_rows(17, 250, 5_000, 2e9) == 0  # fewer than 20,000 pairs
    assert count_affordable_rows(17, 10, 50, 2e9) == 50  # but here they are all there are
    assert count_affordable_rows(21, 250, 5_000, 1e99) == 0
    assert count_affordable_rows(3, 250, 5_000, 0.0) == 0


def test_known_sample_pca_four_records_quarter_turn_recovered():
    # Uncorrelated columns with variances 4 and 2 and a long tail to the right each.
    X = np.array([[3.0, 0.0], [-1.0, 2.0], [-1.0, -1.0], [-1.0, -1.0]])
    Y = np.column_stack([-X[:, 1], X[:, 0]])
    estimate = run_attack(make_sample_view(Y, X))
    for name in (*BY_SIGNS, "overlay"):
        np.testing.assert_allclose(estimate.candidates[name], X, atol=1e-6)
    assert estimate.notes["eigen_gap"] == pytest.approx(0.5)
    assert estimate.notes["agreement"] == 1.0


@pytest.mark.extended
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("translated", [False, True])
def test_known_sample_pca_sample_of_population_recovers_rotation(seed, translated):
    rng = np.random.default_rng(seed)
    X, sample = draw_clustered_records(rng, 500, 5), draw_clustered_records(rng, 120, 5)
    Y = X @ random_orthogonal(5, rng) + (rng.normal(0, 9, 5) if translated else 0.0)
    view = make_sample_view(Y, sample, facts={"translation": "secret"} if translated else None)
    estimate = run_attack(view)
    assert breach_rate(X, estimate.candidates["overlay"]) >= 0.9
    guess = mean_error(X, np.broadcast_to(X.mean(axis=0), X.shape))
    for name in (*BY_SIGNS, "cautious"):
        assert mean_error(X, estimate.candidates[name]) < 0.8 * guess, name
    assert estimate.notes["sign_confidence"] > 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_known_sample_pca_sample_in_release_recovers_exactly(seed):
    rng = np.random.default_rng(seed)
    X = draw_clustered_records(rng, 800, 6)  # more rows than the overlay climbs on at first
    view = make_sample_view(X @ random_orthogonal(6, rng), X[rng.permutation(800)[:60]])
    np.testing.assert_allclose(run_attack(view).candidates["overlay"], X, atol=1e-6)


def test_snap_to_rows_complete_release_finds_sample():
    rng = np.random.default_rng(4)
    X = draw_skewed(rng, 5_000, 4)
    M = random_orthogonal(4, rng)
    Y, sample = X @ M, X[:60]
    tilted = M.T.copy()
    tilted[:, 0] += 0.02  # a little off
    found = snap_to_rows(RigidMap(np.zeros(4), np.zeros(4), tilted), sample, Y, has_origin=True)
    np.testing.assert_allclose(found.apply(Y), X, atol=1e-8)
    strangers = draw_skewed(rng, 60, 4)
    start = RigidMap(np.zeros(4), np.zeros(4), tilted)
    assert snap_to_rows(start, strangers, Y, has_origin=True) is start


def test_known_sample_pca_equal_variances_recovered_by_overlay_only():
    rng = np.random.default_rng(5)
    X, sample = draw_clustered_records(rng, 500, 2), draw_clustered_records(rng, 80, 2)
    whitening = np.linalg.inv(np.linalg.cholesky(np.cov(X.T))).T
    X, sample = X @ whitening, sample @ whitening  # no direction varies more than another
    estimate = run_attack(
        make_sample_view(X @ random_orthogonal(2, rng), sample, facts={"translation": "secret"})
    )
    *axes, overlay = (mean_error(X, estimate.candidates[name]) for name in (*BY_SIGNS, "overlay"))
    assert overlay < 0.05
    assert min(axes) > 3 * overlay


def test_run_em_any_start_likelihood_never_falls():
    rng = np.random.default_rng(6)
    X, sample = draw_skewed(rng, 300, 3), draw_skewed(rng, 60, 3)
    Q = random_orthogonal(3, rng)
    values = [
        run_em(Q, sample, X, has_origin=True, is_search=False, steps=steps).likelihood
        for steps in (1, 2, 4, 8, 16)
    ]
    assert all(a <= b + 1e-9 for a, b in pairwise(values))


@pytest.mark.parametrize("seed", range(3))
def test_known_sample_pca_independent_noise_no_breach(seed):
    rng = np.random.default_rng(seed)
    X, sample = draw_skewed(rng, 400, 4), draw_skewed(rng, 60, 4)
    Y = draw_skewed(rng, 400, 4) @ random_orthogonal(4, rng)  # of other persons
    estimate = run_attack(make_sample_view(Y, sample, effort="quick"))
    baseline = breach_rate(X, np.broadcast_to(X.mean(axis=0), X.shape))
    for name, X_hat in estimate.candidates.items():
        assert breach_rate(X, X_hat) <= baseline + 0.03, name


def test_known_sample_pca_centred_normal_records_low_sign_confidence():
    right, confident, best = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scales = np.array([4.0, 2.0, 1.0])
        X, sample = rng.standard_normal((2, 300, 3)) * scales
        view = make_sample_view(X @ random_orthogonal(3, rng), sample, effort="quick")
        axes = match_axes(view, sample)
        truth = choose_best_signs(axes, view.Y, X)
        evidence = compute_axis_evidence(axes)
        right.append(np.all(evidence.signs == truth))
        confident.append(np.abs(evidence.z) > 3)
        best.append(mean_error(X, estimate_with_best_signs(view, X)))
    assert np.mean(right) < 0.42  # 1/8 by chance; four standard errors
    assert np.mean(confident) < 0.05
    assert np.mean(best) < 0.2  # the axes are fine


def test_find_origin_documented_maps_expected_origin():
    rng = np.random.default_rng(7)
    X = draw_skewed(rng, 200, 3)
    Y = X @ random_orthogonal(3, rng)
    view = make_sample_view(Y, X)
    assert find_origin(view, X).tolist() == [0, 0, 0]
    assert find_origin(make_sample_view(Y, X, facts={"translation": "secret"}), X) is None
    assert find_origin(make_sample_view(Y, X, space="embedded"), X) is None
    assert find_origin(make_sample_view(Y, X, space="components"), X) is None
    assert find_origin(make_sample_view(Y + 20.0, X), X) is None  # says rotation, but is shifted
    public = replace(view.public, centre=np.full(3, 0.5))
    turned = replace(view, public=public, Y=(X - 0.5) @ random_orthogonal(3, rng))
    assert find_origin(turned, X).tolist() == [0.5, 0.5, 0.5]
    assert breach_rate(X, run_attack(turned).candidates["overlay"]) > 0.9


def test_known_sample_pca_unknown_scale_fitted():
    rng = np.random.default_rng(8)
    X, sample = draw_clustered_records(rng, 400, 4), draw_clustered_records(rng, 80, 4)
    estimate = run_attack(
        make_sample_view(
            7.0 * X @ random_orthogonal(4, rng),
            sample,
            keeps=False,
            space="embedded",
            effort="quick",
        )
    )
    assert mean_error(X, estimate.candidates["overlay"]) < 0.15


def test_known_sample_pca_fewer_released_columns_leading_axes():
    rng = np.random.default_rng(9)
    X, sample = draw_clustered_records(rng, 400, 5), draw_clustered_records(rng, 80, 5)
    vectors = np.linalg.eigh(np.cov(X.T))[1][:, ::-1]
    Y = (X - X.mean(axis=0)) @ vectors[:, :3] @ random_orthogonal(3, rng)
    estimate = run_attack(
        make_sample_view(Y, sample, space="embedded", keeps=False, effort="quick")
    )
    limit = mean_error(X, X.mean(axis=0) + (X - X.mean(axis=0)) @ vectors[:, :3] @ vectors[:, :3].T)
    assert mean_error(X, estimate.candidates["overlay"]) < limit + 0.1


@pytest.mark.extended
@pytest.mark.parametrize(
    ("Y", "sample"),
    [
        (np.eye(3), np.array([[0.0, 1, 2], [1, 0, 0]])),  # three rows, two records
        (
            np.column_stack([np.arange(9.0), np.ones(9)]),
            np.column_stack([np.ones(5), np.arange(5)]),
        ),
        (np.repeat(np.eye(2), 9, axis=0), np.repeat(np.eye(2), 4, axis=0)),  # duplicates
        (np.random.default_rng(0).random((9, 4)), np.random.default_rng(1).random((6, 2))),  # s > d
        (np.random.default_rng(0).random((9, 1)), np.random.default_rng(1).random((6, 4))),  # s < d
        (np.random.default_rng(0).random((30, 22)), np.random.default_rng(1).random((40, 22))),
    ],
)
@pytest.mark.parametrize("space", ["rotated", "embedded"])
def test_known_sample_pca_small_and_degenerate_tables_finite_values(Y, sample, space):
    estimate = run_attack(make_sample_view(Y, sample, space=space, keeps=space == "rotated"))
    expected = {"coordinate", "moments", "hybrid", "cautious", "overlay"}
    assert set(estimate.candidates) == expected | ({"exhaustive"} if Y.shape[1] <= 20 else set())
    for X_hat in estimate.candidates.values():
        assert X_hat.shape == (len(Y), sample.shape[1])
        assert np.isfinite(X_hat).all()
    assert all(np.isfinite(note) for note in estimate.notes.values())


def test_known_sample_pca_quick_effort_no_exhaustive_signs():
    rng = np.random.default_rng(0)
    view = make_sample_view(rng.random((20, 3)), rng.random((9, 3)), effort="quick")
    assert "exhaustive" not in run_attack(view).candidates


def test_known_sample_pca_unsuitable_view_not_applicable():
    rng = np.random.default_rng(0)
    view = make_sample_view(rng.random((9, 2)), rng.random((5, 2)))
    for other in (
        replace(view, sample=None),
        replace(view, sample=np.ones((5, 2))),
        replace(view, sample=np.ones((1, 2))),
        replace(view, Y=np.ones((9, 2))),
        replace(view, public=replace(view.public, space="original")),
    ):
        with pytest.raises(NotApplicable, match="known_sample_pca"):
            run_attack(other)


@pytest.mark.extended
def test_known_sample_pca_shuffled_rows_and_same_seed_same_estimates():
    rng = np.random.default_rng(10)
    X, sample = (
        draw_clustered_records(rng, 700, 3),
        draw_clustered_records(rng, 160, 3),
    )  # both larger than the search's parts
    view = make_sample_view(X @ random_orthogonal(3, rng), sample, effort="quick")
    order = rng.permutation(700)
    one, again, other = (
        run_attack(view, 1),
        run_attack(view, 1),
        run_attack(replace(view, Y=view.Y[order]), 1),
    )
    for name, X_hat in one.candidates.items():
        assert np.array_equal(X_hat, again.candidates[name])
        np.testing.assert_allclose(other.candidates[name], X_hat[order], atol=1e-9)


@pytest.mark.exhaustive
def test_known_sample_pca_normal_records_of_paper_error_falls_with_sample():
    means = {}
    for share in (0.01, 0.05, 0.20):
        found = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            law = ((-10.0, 10.0), ((1.0, 1.5), (1.5, 3.0)))
            X, sample = (rng.multivariate_normal(*law, n) for n in (1_000, int(1_000 * share)))
            candidates = run_attack(
                make_sample_view(X @ random_orthogonal(2, rng), sample)
            ).candidates
            found.append([mean_error(X, candidates[name]) for name in (*BY_SIGNS, "overlay")])
        means[share] = np.mean(found, axis=0)
    assert np.all(means[0.05] < 0.06)  # almost overlap
    assert np.all(means[0.20] < means[0.05])
    assert np.all(means[0.05] < means[0.01])


@pytest.mark.exhaustive
def test_known_sample_pca_adult_of_paper_error_falls_with_sample(shared_data: Path):
    wanted = ("age", "education_num", "hours_per_week")
    with gzip.open(shared_data / "adult.csv.gz", "rt") as file:
        lines = list(csv.DictReader(file))
    X_all = np.array([[line[name] for name in wanted] for line in lines], dtype=np.float64)
    means = {}
    for share in (0.02, 0.05, 0.20):
        found = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(X_all))
            cut = int(len(X_all) / (1 + share))
            X, sample = X_all[order[:cut]], X_all[order[cut:]]
            candidates = run_attack(
                make_sample_view(X @ random_orthogonal(3, rng), sample)
            ).candidates
            found.append([mean_error(X, candidates[name]) for name in ("hybrid", "overlay")])
        means[share] = np.mean(found, axis=0)
    assert np.all(means[0.05] < 0.1)
    assert np.all(means[0.20] < means[0.02])


@pytest.mark.slow
@pytest.mark.parametrize("law", ["skewed", "normal"])
def test_known_sample_pca_hybrid_signs_at_least_as_good_as_exhaustive(law):
    d, n, p = 8, 1_500, 150
    hybrid, exhaustive = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        if law == "skewed":
            X = draw_skewed(rng, n + p, d) - draw_skewed(np.random.default_rng(0), 9_000, d).mean(
                axis=0
            )
        else:
            X = (
                (rng.standard_normal((n + p, d)) + 0.2)
                * 0.7 ** np.arange(d)
                @ random_orthogonal(d, rng)
            )
        view = make_sample_view(X[p:] @ random_orthogonal(d, rng), X[:p])
        axes = match_axes(view, X[:p])
        truth = choose_best_signs(axes, view.Y, X[p:])
        hybrid.append(choose_hybrid_signs(axes, compute_axis_evidence(axes), 8, rng) == truth)
        exhaustive.append(choose_exhaustive_signs(axes, n, rng) == truth)
    assert np.mean(hybrid) >= np.mean(exhaustive)
    assert np.mean(np.all(hybrid, axis=1)) >= np.mean(np.all(exhaustive, axis=1))
