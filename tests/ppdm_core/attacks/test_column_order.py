from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.fft import dct

from ppdm_core.attacks._column_matching import (
    assign_columns,
    match_by_distribution,
    transport_costs,
)
from ppdm_core.attacks.column_order import ColumnOrder, ColumnTransform
from ppdm_core.model.attacker import AttackerView, KnownRows
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from tests.support.views import make_public, make_view

DCT = {"transform": "orthonormal DCT-II"}


def draw_correlated_records(rng: np.random.Generator, n: int, d: int = 6) -> np.ndarray:
    """Return correlated columns of different distributions in [0, 1]."""
    common = rng.random((n, 1))
    own = rng.random((n, d)) ** np.linspace(0.5, 3.0, d)
    return np.linspace(1.0, 0.3, d) * (0.6 * own + 0.4 * common)


def make_shuffled_view(X, Y, facts=DCT, **held) -> AttackerView:
    public = make_public(Y, "dct_fuzzy", facts=facts)
    return make_view(Y, d=X.shape[1], public=public, **held)


def transform_columns(X: np.ndarray) -> np.ndarray:
    return dct(X, type=2, norm="ortho", axis=1)


def breach_rate(X: np.ndarray, X_hat: np.ndarray) -> float:
    error = np.linalg.norm(X - X_hat, axis=1)
    return float(np.mean(error <= 0.1 * np.linalg.norm(X, axis=1)))


def run_attack(view: AttackerView, seed: int = 0):
    return ColumnOrder().attack(view, np.random.default_rng(seed))


def test_column_order_one_hand_worked_record_finds_order():
    # (3, 1) has the cosines 4 / sqrt(2) and 2 / sqrt(2); the release shows them the other way.
    Y = np.array([[2.0, 4.0], [0.0, 2.0]]) / np.sqrt(2)
    view = make_shuffled_view(
        np.zeros((2, 2)), Y, known=KnownRows(np.array([[3.0, 1.0]]), np.array([0]))
    )
    view = replace(view, schema=Schema((Numeric("a", 0.0, 9.0), Numeric("b", 0.0, 9.0))))
    np.testing.assert_allclose(run_attack(view).candidates["value"], [[3.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("held", ["known", "records", "sample"])
def test_column_order_all_cosines_released_finds_order(held, seed):
    rng = np.random.default_rng(seed)
    X = draw_correlated_records(rng, 150)
    Y = transform_columns(X)[:, rng.permutation(6)]
    what = {
        "known": {"known": KnownRows(X[9:10], np.array([9]))},
        "records": {"records": X[:4]},
        "sample": {"sample": draw_correlated_records(rng, 200)},
    }[held]
    candidates = run_attack(make_shuffled_view(X, Y, **what)).candidates
    name = "transport" if held == "sample" else "value"
    np.testing.assert_allclose(candidates[name], X, atol=1e-9)


def test_column_order_pruned_cosines_zero_or_predicted():
    rng = np.random.default_rng(3)
    X = draw_correlated_records(rng, 150)
    kept = np.array([3, 0, 1])
    sample = draw_correlated_records(rng, 60)
    view = make_shuffled_view(
        X, transform_columns(X)[:, kept], known=KnownRows(X[:1], np.array([0])), sample=sample
    )
    candidates = run_attack(view).candidates
    assert set(candidates) == {"value", "value_filled", "transport", "transport_filled"}
    C = np.zeros((150, 6))
    C[:, kept] = transform_columns(X)[:, kept]
    zero = np.clip(dct(C, type=3, norm="ortho", axis=1), 0.0, 1.0)
    np.testing.assert_allclose(candidates["value"], zero, atol=1e-12)
    assert breach_rate(X, candidates["value_filled"]) > breach_rate(X, zero)


def test_column_order_public_order_and_centre_finds_order():
    rng = np.random.default_rng(4)
    X = draw_correlated_records(rng, 120)
    view = make_shuffled_view(
        X, X[:, rng.permutation(6)], facts={}, known=KnownRows(X[:1], np.array([0]))
    )
    np.testing.assert_allclose(run_attack(view).candidates["value"], X, atol=1e-12)
    order, centre = rng.permutation(6), np.full(6, 0.5)
    facts = {**DCT, "transform_order": " ".join(str(i + 1) for i in order)}
    view = make_shuffled_view(
        X, transform_columns((X - centre)[:, order])[:, rng.permutation(6)], facts
    )
    view = replace(view, records=X[:3], public=replace(view.public, centre=centre))
    np.testing.assert_allclose(run_attack(view).candidates["value"], X, atol=1e-9)
    transform = ColumnTransform.from_view(view)
    np.testing.assert_allclose(transform.invert(transform.transform(X)), X, atol=1e-12)


def test_match_by_distribution_small_table_matches_brute_force():
    rng = np.random.default_rng(5)
    X = rng.multivariate_normal(
        np.zeros(4), np.eye(4) * 0.2 + 0.8 * np.outer(*[[1, 1, -1, 0]] * 2), 300
    )
    X = np.column_stack([X, rng.normal(size=300)])
    Y, F = X[:200, [2, 0, 3]], X[200:]
    cost = transport_costs(F, Y)
    own, released = np.corrcoef(F.T), np.corrcoef(Y.T)

    def total(order):
        apart = own[np.ix_(order, order)] - released
        return cost[list(order), range(3)].sum() + np.sum(apart**2) / 2

    best = min(permutations(range(5), 3), key=total)
    found = match_by_distribution(F, Y, cost)
    assert total(tuple(found)) <= total(tuple(assign_columns(cost))) + 1e-12
    np.testing.assert_allclose(total(tuple(found)), total(best))


def test_transport_costs_random_columns_match_wasserstein_distance():
    F, Y = np.array([[0.0], [2.0]]), np.array([[3.0], [1.0]])  # moved by 1 each, spread 1 each
    A = np.quantile([0.0, 2.0], (np.arange(256) + 0.5) / 256)
    np.testing.assert_allclose(transport_costs(F, Y), np.log1p(1.0 / A.var()), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_column_order_independent_noise_no_breach(seed):
    rng = np.random.default_rng(seed)
    X = draw_correlated_records(rng, 200)
    view = make_shuffled_view(
        X, rng.laplace(0.0, 1.0, (200, 5)), records=X[:10], sample=draw_correlated_records(rng, 50)
    )
    baseline = breach_rate(X, np.tile(X.mean(axis=0), (200, 1)))
    for X_hat in run_attack(view).candidates.values():
        assert breach_rate(X, X_hat) <= baseline + 0.05


def test_column_order_degenerate_tables_finite_values():
    X = np.array([[0.5, 0.5, 0.2], [0.5, 0.5, 0.9], [0.5, 0.5, 0.2]])
    for held in ({"known": KnownRows(X[:1], np.array([0]))}, {"records": X[:1]}, {"sample": X[:2]}):
        for Y in (X, X[:, 1:], X[:, :1]):
            for X_hat in run_attack(make_shuffled_view(X, Y, facts={}, **held)).candidates.values():
                assert X_hat.shape == X.shape
                assert np.isfinite(X_hat).all()


def test_column_order_shuffled_rows_same_estimates():
    rng = np.random.default_rng(8)
    X = draw_correlated_records(rng, 80)
    view = make_shuffled_view(
        X,
        transform_columns(X)[:, [4, 1, 0, 5]],
        records=X[:5],
        sample=draw_correlated_records(rng, 40),
    )
    order = rng.permutation(80)
    one, two = run_attack(view).candidates, run_attack(replace(view, Y=view.Y[order])).candidates
    for name, X_hat in one.items():
        np.testing.assert_allclose(two[name], X_hat[order], atol=1e-9)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"known": None}, "needs a known record"),
        ({"Y": np.ones((3, 4))}, "no more released columns"),
        (
            {"public": PublicParameters("copy", "original", ("a", "b", "c"))},
            "columns whose order is secret",
        ),
    ],
)
def test_column_order_unsuitable_view_not_applicable_with_reason(changed, why):
    view = make_shuffled_view(
        np.ones((3, 3)), np.ones((3, 3)), known=KnownRows(np.ones((1, 3)), np.array([0]))
    )
    with pytest.raises(NotApplicable, match=why):
        run_attack(replace(view, **changed))
