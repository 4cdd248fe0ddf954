from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks._fast_ica import fit_independent_components, negentropy
from ppdm_core.attacks.known_sample_ica import KnownSampleIca, match_components
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.views import make_public, make_view

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def make_sample_view(Y, sample, *, keeps=True, space="rotated", facts=None):
    public = make_public(Y, "any", space, preserves_distances=keeps, facts=facts or {})
    fields = {"public": public, "sample": sample, "effort": "quick"}
    return make_view(Y, d=sample.shape[1], bounds=(-99.0, 99.0), **fields)


def draw_parts(rng, n, d):
    """Return independent columns far from normal, each with its own distribution."""
    laws = (
        lambda: rng.exponential(1.0, n),
        lambda: rng.choice([-0.5, 1.5], n, p=[0.8, 0.2]) + 0.1 * rng.standard_normal(n),
        lambda: -rng.gamma(0.4, 1.5, n),
        lambda: 4.0 * rng.beta(0.5, 1.5, n),
        lambda: rng.choice([0.0, 1.0, 3.0], n, p=[0.3, 0.5, 0.2]) + 0.1 * rng.standard_normal(n),
    )
    return np.column_stack([laws[j % 5]() for j in range(d)])


def draw_population(rng, n, d):
    """Correlated columns far from zero."""
    return 4.0 + draw_parts(rng, n, d) @ np.random.default_rng(d).normal(0, 0.6, (d, d))


def run_attack(view, seed=0):
    return KnownSampleIca().attack(view, np.random.default_rng(seed))


def mean_error(X, X_hat):
    return np.mean(np.linalg.norm(X - X_hat, axis=1) / np.linalg.norm(X, axis=1))


def breach_rate(X, X_hat):
    return np.mean(np.linalg.norm(X - X_hat, axis=1) <= 0.1 * np.linalg.norm(X, axis=1))


def estimate_mean(X):
    return np.broadcast_to(X.mean(axis=0), X.shape)


def test_fit_independent_components_mixed_columns_found_up_to_order_and_sign():
    rng = np.random.default_rng(1)
    sources = draw_parts(rng, 4_000, 4)
    A = rng.normal(size=(4, 4))
    found = fit_independent_components(sources @ A, rng)
    U = found.components(sources @ A, found.mean)
    likeness = np.abs(np.corrcoef(U.T, sources.T)[:4, 4:])
    assert np.sort(likeness.max(axis=0)).min() > 0.98
    assert sorted(likeness.argmax(axis=0)) == [0, 1, 2, 3]
    np.testing.assert_allclose(U.std(axis=0, ddof=1), 1.0)
    np.testing.assert_allclose(found.mean + U @ found.mixing, sources @ A, atol=1e-9)


def test_negentropy_normal_column_near_zero():
    rng = np.random.default_rng(2)
    U = np.column_stack([rng.standard_normal(200_000), rng.choice([-1.0, 1.0], 200_000)])
    weak, strong = negentropy(U)
    assert weak < 1e-3
    # exp(-1/2) against sqrt(1/2), squared, times 24 / (16 sqrt 3 - 27)
    assert strong == pytest.approx(33.6694 * (0.606531 - 0.707107) ** 2, rel=1e-2)


def test_match_components_hand_worked_columns_expected_order():
    # Column 0 of V is column 1 of U turned round; column 1 is column 0 moved by 0.5.
    U = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 5.0]])
    V = np.array([[0.0, 2.5], [-5.0, 0.5], [-1.0, 1.5]])
    T, cost = match_components(U, V)
    assert T.tolist() == [[0, -1], [1, 0]]
    assert cost == pytest.approx((0.0 + 0.5) / 2)
    assert match_components(U, V + np.array([0.0, 90.0]))[1] == pytest.approx(
        (0.0 + 1.0) / 2
    )  # never more than one


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("translated", [False, True])
def test_known_sample_ica_rotated_independent_parts_recovered(seed, translated):
    rng = np.random.default_rng(seed)
    X, sample = draw_population(rng, 1_500, 4), draw_population(rng, 600, 4)
    Y = X @ random_orthogonal(4, rng) + (rng.normal(0, 9, 4) if translated else 0.0)
    facts = {"translation": "secret"} if translated else None
    estimate = run_attack(make_sample_view(Y, sample, facts=facts))
    assert set(estimate.candidates) == {"matched", "affine", "orthogonal", "overlay"}
    for name, X_hat in estimate.candidates.items():
        assert breach_rate(X, X_hat) >= 0.9, name
    if translated:  # else the means, far from zero, are part of it
        assert estimate.notes["matching_cost"] < 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_known_sample_ica_any_linear_map_recovered(seed):
    rng = np.random.default_rng(10 + seed)
    X, sample = draw_population(rng, 1_500, 4), draw_population(rng, 600, 4)
    estimate = run_attack(make_sample_view(X @ rng.normal(size=(4, 4)), sample, keeps=False))
    assert set(estimate.candidates) == {"matched", "affine"}
    for name, X_hat in estimate.candidates.items():
        assert breach_rate(X, X_hat) >= 0.9, name


def test_known_sample_ica_two_of_three_columns_recovered():
    rng = np.random.default_rng(4)
    X, sample = 3.0 + draw_parts(rng, 1_500, 4), 3.0 + draw_parts(rng, 600, 4)
    Y = X[:, [3, 0]] @ rng.normal(size=(2, 2))
    X_hat = run_attack(make_sample_view(Y, sample, keeps=False)).candidates["matched"]
    assert np.corrcoef(X_hat[:, 0], X[:, 0])[0, 1] > 0.95
    assert np.corrcoef(X_hat[:, 3], X[:, 3])[0, 1] > 0.95
    assert mean_error(X, X_hat) < mean_error(X, estimate_mean(X))


@pytest.mark.parametrize("seed", SEEDS)
def test_known_sample_ica_other_population_no_breach(seed):
    rng = np.random.default_rng(20 + seed)
    X, sample = draw_population(rng, 800, 4), draw_population(rng, 300, 4)
    estimate = run_attack(
        make_sample_view(draw_population(rng, 800, 4) @ random_orthogonal(4, rng), sample)
    )
    for name, X_hat in estimate.candidates.items():
        assert breach_rate(X, X_hat) <= breach_rate(X, estimate_mean(X)) + 0.03, name


@pytest.mark.slow
def test_known_sample_ica_normal_parts_low_strength_note():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1_000, 3))
    notes = run_attack(make_sample_view(X @ random_orthogonal(3, rng), X[:300])).notes
    assert notes["strength"] < 0.02
    other = draw_parts(rng, 1_000, 3)
    assert (
        run_attack(make_sample_view(other @ random_orthogonal(3, rng), other[:300])).notes[
            "strength"
        ]
        > 0.05
    )


@pytest.mark.parametrize(
    ("Y", "sample"),
    [
        (np.eye(3), np.array([[0.0, 1, 2], [1, 0, 0]])),
        (
            np.column_stack([np.arange(9.0), np.ones(9)]),
            np.column_stack([np.ones(5), np.arange(5)]),
        ),
        (np.repeat(np.eye(2), 9, axis=0), np.repeat(np.eye(2), 4, axis=0)),
        (np.random.default_rng(0).random((9, 4)), np.random.default_rng(1).random((6, 2))),
        (np.random.default_rng(0).random((9, 1)), np.random.default_rng(1).random((6, 4))),
    ],
)
@pytest.mark.parametrize("space", ["rotated", "embedded"])
def test_known_sample_ica_small_and_degenerate_tables_finite_values(Y, sample, space):
    estimate = run_attack(make_sample_view(Y, sample, space=space))
    for X_hat in estimate.candidates.values():
        assert X_hat.shape == (len(Y), sample.shape[1])
        assert np.isfinite(X_hat).all()


def test_known_sample_ica_unsuitable_view_not_applicable():
    rng = np.random.default_rng(0)
    view = make_sample_view(rng.random((9, 2)), rng.random((5, 2)))
    for other in (
        replace(view, sample=None),
        replace(view, sample=np.ones((5, 2))),
        replace(view, Y=np.ones((9, 2))),
        replace(view, public=replace(view.public, space="original")),
    ):
        with pytest.raises(NotApplicable, match="known_sample_ica"):
            run_attack(other)


def test_known_sample_ica_shuffled_rows_and_same_seed_same_estimates():
    rng = np.random.default_rng(10)
    X, sample = draw_population(rng, 300, 3), draw_population(rng, 100, 3)
    view = make_sample_view(X @ random_orthogonal(3, rng), sample)
    order = rng.permutation(300)
    one, again, other = (
        run_attack(view, 1),
        run_attack(view, 1),
        run_attack(replace(view, Y=view.Y[order]), 1),
    )
    for name, X_hat in one.candidates.items():
        assert np.array_equal(X_hat, again.candidates[name])
        np.testing.assert_allclose(other.candidates[name], X_hat[order], atol=1e-9)
