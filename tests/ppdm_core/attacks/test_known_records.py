from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.known_records import KnownRecords, find_rows
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.views import make_public, make_view

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def make_records_view(X, Y, records, **public) -> AttackerView:
    return make_view(
        Y, d=X.shape[1], bounds=(-9.0, 9.0), public=make_public(Y, **public), records=records
    )


def breach_rate(X: np.ndarray, X_hat: np.ndarray) -> float:
    error = np.linalg.norm(X - X_hat, axis=1)
    return float(np.mean(error <= 0.1 * np.linalg.norm(X, axis=1) + 1e-12))


@pytest.mark.parametrize("translation", [0.0, 2.5])
@pytest.mark.parametrize("seed", range(3))
def test_known_records_rotated_release_recovers_all(seed, translation):
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 1.0, (200, 5))
    Y = X @ random_orthogonal(5, rng) + translation
    view = make_records_view(X, Y, X[50:58])
    estimate = KnownRecords().attack(view, rng)
    assert estimate.notes["matched"] == 1.0
    assert breach_rate(X, estimate.candidates["orthogonal"]) == 1.0
    np.testing.assert_array_equal(find_rows(view, view.records, rng)[0], np.arange(50, 58))


def test_find_rows_three_hand_worked_records_found():
    # Sides 3, 4, 5: only rows 0, 2 and 3 are so far apart, and only in this order.
    Y = np.array([[10.0, 10.0], [0.0, 0.0], [10.0, 13.0], [14.0, 10.0], [2.0, 7.0]])
    records = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    rows, _ = find_rows(make_records_view(records, Y, records), records, np.random.default_rng(0))
    assert rows.tolist() == [0, 2, 3]


def test_find_rows_record_outside_release_unmatched():
    rng = np.random.default_rng(4)
    X = rng.normal(1.0, 1.0, (150, 4))
    records = np.vstack([X[:8], rng.normal(1.0, 1.0, (2, 4))])
    view = make_records_view(X, X @ random_orthogonal(4, rng), records)
    rows, _ = find_rows(view, records, rng)
    assert rows.tolist() == [*range(8), -1, -1]


@pytest.mark.parametrize("seed", SEEDS)
def test_known_records_approximate_distances_recovers_most(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 1.0, (150, 4)) ** 3 / 3.0 + 1.0
    Y = 0.98 * X @ random_orthogonal(4, rng) + rng.normal(0.0, 0.03, X.shape)
    estimate = KnownRecords().attack(make_records_view(X, Y, X[:20]), rng)
    assert estimate.notes["matched"] > 0.8
    assert estimate.notes["residual"] < 0.3
    assert max(breach_rate(X[20:], X_hat[20:]) for X_hat in estimate.candidates.values()) > 0.8


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_known_records_without_match_estimates_mean(k):
    rng = np.random.default_rng(k)
    X = rng.normal(1.0, 1.0, (120, 4))
    view = make_records_view(X, rng.laplace(0.0, 1.0, X.shape), X[:k])
    estimate = KnownRecords().attack(view, rng)
    assert estimate.notes["matched"] == 0.0
    for name, X_hat in estimate.candidates.items():
        np.testing.assert_array_equal(X_hat, np.tile(X[:k].mean(axis=0), (120, 1)))
        assert not estimate.claims[name].any()


@pytest.mark.parametrize("k", [1, 2])
def test_find_rows_one_or_two_records_found_by_length(k):
    rng = np.random.default_rng(9)
    X = rng.normal(1.0, 1.0, (60, 3))
    view = make_records_view(
        X, X @ random_orthogonal(3, rng), X[7 : 7 + k], preserves_distances=True
    )
    rows, _ = find_rows(view, view.records, rng)
    assert rows.tolist() == list(range(7, 7 + k))


def test_known_records_degenerate_tables_finite_values():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 9, (80, 5)).astype(np.float64)
    X[:, 2] = 4.0
    X[1] = X[0]
    for Y in (
        X @ random_orthogonal(5, rng),
        np.ones((80, 5)),
        X[:, :2],
        np.pad(X, ((0, 0), (0, 2))),
    ):
        estimate = KnownRecords().attack(make_records_view(X, Y, X[:12]), rng)
        for X_hat in estimate.candidates.values():
            assert np.isfinite(X_hat).all()


def test_known_records_tiny_release_repeatable_for_shuffled_rows():
    rng = np.random.default_rng(6)
    X = rng.normal(1.0, 1.0, (3, 2))
    view = make_records_view(X, X @ random_orthogonal(2, rng), X[[2, 0, 1]])
    one, two = (KnownRecords().attack(view, np.random.default_rng(1)) for _ in range(2))
    order = np.array([1, 2, 0])
    moved = replace(view, Y=view.Y[order])
    three = KnownRecords().attack(moved, np.random.default_rng(1))
    for name, X_hat in one.candidates.items():
        np.testing.assert_array_equal(X_hat, two.candidates[name])
        np.testing.assert_allclose(three.candidates[name], X_hat[order], atol=1e-8)
        np.testing.assert_allclose(X_hat, X, atol=1e-8)


@pytest.mark.parametrize("records", [None, np.zeros((0, 3))])
def test_known_records_without_records_not_applicable(records):
    view = make_records_view(np.ones((3, 3)), np.ones((3, 3)), records)
    with pytest.raises(NotApplicable, match=r"known_records needs .*\."):
        KnownRecords().attack(view, np.random.default_rng(0))
