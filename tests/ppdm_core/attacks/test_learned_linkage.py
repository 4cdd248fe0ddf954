from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks._pair_regression import (
    fit_by_column,
    fit_kernel,
    fit_least_squares,
    fit_ridge,
)
from ppdm_core.attacks._residual_weights import weigh_directions, weigh_features
from ppdm_core.attacks._row_features import compute_features, rank_within
from ppdm_core.attacks.learned_linkage import MIN_PAIRS, LearnedLinkage
from ppdm_core.model.attacker import RecordSet
from ppdm_core.model.errors import NotApplicable
from tests.support.views import make_known, make_public, make_view

N, KNOWN = 150, 40


def draw_table(rng: np.random.Generator, d: int = 5) -> np.ndarray:
    return rng.gamma(2.0, size=(N, d)) + rng.gamma(1.0, size=(N, 1))


def find_rate(X: np.ndarray, Y: np.ndarray, *, own_columns: bool = False) -> float:
    """Return the share of the unknown persons whose row the best candidate finds."""
    targets = np.arange(KNOWN, N)
    nothing = np.zeros((len(targets), 0), dtype=np.int32)
    view = make_view(
        Y,
        d=X.shape[1],
        public=make_public(Y, space="rotated" if own_columns else "original"),
        known=make_known(X, np.arange(KNOWN)),
        targets=RecordSet(X[targets], nothing, np.zeros(len(targets), dtype=np.int32)),
    )
    found = LearnedLinkage().attack(view, np.random.default_rng(0)).candidates
    assert set(found) == {"first", "second", "third"}
    return max(float(np.mean(links == targets)) for links in found.values())


def spare_direction(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = 20 * rng.standard_normal(X.shape)
    w = rng.standard_normal(X.shape[1])
    return X + noise - np.outer(noise @ w, w) / (w @ w)


def bend(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.tanh(Z @ rng.standard_normal((X.shape[1], X.shape[1])) / 2)


def rotate_each(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    G = rng.standard_normal(X.shape)
    return G / np.linalg.norm(G, axis=1, keepdims=True) * np.linalg.norm(X, axis=1, keepdims=True)


def add_constant_length(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    G = rng.standard_normal(X.shape)
    return X + 20 * X.std(axis=0) * G / np.linalg.norm(G, axis=1, keepdims=True)


def add_orthogonal(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    Z, G = X / X.std(axis=0), 20 * rng.standard_normal(X.shape)
    along = (G * Z).sum(axis=1, keepdims=True) / (Z**2).sum(axis=1, keepdims=True)
    return X + X.std(axis=0) * (G - along * Z)


def hide_in_median(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    G = 5 * rng.standard_normal(X.shape)
    return G - np.median(G, axis=1, keepdims=True) + X[:, :1]


def hide_in_product(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    Z, rank = rng.standard_normal(X.shape), np.argsort(np.argsort(X[:, 0])) / len(X)
    Z[:, 1] = (2 * rank - 1) / Z[:, 0]
    return X.mean(axis=0) + X.std(axis=0) * Z


def keep_quadratic_form(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random rows of three columns with x0 (x1 - 2 x2) + 3 x1^2 of the record."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    kept = Z[:, 0] * (Z[:, 1] - 2 * Z[:, 2]) + 3 * Z[:, 1] ** 2
    G = rng.standard_normal(X.shape)
    G[:, 0] = (kept - 3 * G[:, 1] ** 2) / (G[:, 1] - 2 * G[:, 2])
    return X.mean(axis=0) + X.std(axis=0) * G


UNSAFE = {
    "one column as a product": hide_in_product,
    "constant length of the noise": add_constant_length,
    "noise orthogonal to the record": add_orthogonal,
    "one column as the median": hide_in_median,
    "sums to zero": lambda X, rng: (
        X + (lambda E: E - E.mean(axis=1, keepdims=True))(20 * rng.standard_normal(X.shape))
    ),
    "spares a direction": spare_direction,
    "rearranged": lambda X, rng: rng.permuted(X, axis=1),
    "sorted": lambda X, rng: np.sort(X, axis=1),
    "rotated one by one": rotate_each,
    "one column": lambda X, rng: np.column_stack(
        [X[:, :1] + 7, 20 * rng.standard_normal((N, X.shape[1] - 1))]
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("name", UNSAFE)
def test_attack_release_that_keeps_something_finds_persons(name: str) -> None:
    rng = np.random.default_rng(7)
    X = draw_table(rng)
    assert find_rate(X, UNSAFE[name](X, rng)) > 0.3


def test_attack_curved_map_under_other_names_finds_persons() -> None:
    rng = np.random.default_rng(8)
    X = draw_table(rng, 3)
    assert find_rate(X, bend(X, rng), own_columns=True) > 0.3


def test_attack_kept_quadratic_form_finds_persons() -> None:
    rng = np.random.default_rng(5)
    X = draw_table(rng, 3)
    assert find_rate(X, keep_quadratic_form(X, rng)) > 0.3


def test_attack_distances_from_neighbours_finds_persons() -> None:
    X = draw_table(np.random.default_rng(4))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.sort(np.linalg.norm(Z[:, None] - Z, axis=2), axis=1)[:, 1:5]
    assert find_rate(X, Y, own_columns=True) > 0.5


def test_attack_independent_release_finds_nobody() -> None:
    rng = np.random.default_rng(9)
    X = draw_table(rng)
    assert find_rate(X, rng.normal(X.mean(axis=0), X.std(axis=0), X.shape)) < 0.05


def test_attack_few_pairs_not_applicable() -> None:
    X = draw_table(np.random.default_rng(1))
    view = make_view(
        X,
        known=make_known(X, np.arange(MIN_PAIRS - 1)),
        targets=RecordSet(X, np.zeros((N, 0), dtype=np.int32), np.zeros(N, dtype=np.int32)),
    )
    with pytest.raises(NotApplicable, match=f"{MIN_PAIRS} known records"):
        LearnedLinkage().attack(view, np.random.default_rng(0))


@pytest.mark.parametrize("fit", [fit_ridge, fit_least_squares, fit_kernel])
def test_fit_residuals_are_those_of_left_out_pairs(fit) -> None:
    rng = np.random.default_rng(2)
    U = rng.standard_normal((30, 2))
    V = np.column_stack([U @ [1.0, -2.0], np.sin(U[:, 0])]) + 0.1 * rng.standard_normal((30, 2))
    _, residuals = fit(U, V)
    keep = np.arange(30) != 4
    left_out = V[4] - fit(U[keep], V[keep])[0](U[4:5])[0]
    assert residuals[4] == pytest.approx(left_out, abs=0.05)


def test_fit_kernel_smooth_function_predicted() -> None:
    U = np.random.default_rng(3).uniform(-2, 2, (200, 1))
    predict, _ = fit_kernel(U, np.sin(2 * U))
    assert predict(np.array([[0.3]])) == pytest.approx(np.sin(0.6), abs=0.01)


def test_weigh_directions_vanishing_error_dominates() -> None:
    rng = np.random.default_rng(4)
    errors = rng.standard_normal((60, 3))
    errors -= np.outer(errors.sum(axis=1), np.ones(3)) / 3  # none in the direction (1, 1, 1)
    W = weigh_directions(errors, np.ones(3))
    along, across = np.linalg.norm(np.ones(3) @ W), np.linalg.norm(np.array([1.0, -1.0, 0]) @ W)
    assert along > 100 * across


def test_weigh_features_constant_feature_ignored() -> None:
    W = weigh_features(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 0.0]))
    assert W.tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_compute_features_rearranged_rows_same_invariants() -> None:
    rng = np.random.default_rng(5)
    A = rng.random((40, 4))
    B = rng.permuted(A, axis=1)
    first, second = (compute_features(X, X, X) for X in (A, B))
    assert np.allclose(first["sorted"], second["sorted"])
    assert np.allclose(first["invariants"][:, :6], second["invariants"][:, :6])


def test_rank_within_ties_count_half() -> None:
    found = rank_within(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [2.0], [2.0], [3.0]]))
    assert found.ravel().tolist() == [-0.375, 0.0, 0.5]


def test_fit_by_column_oscillation_of_one_column_predicted() -> None:
    rng = np.random.default_rng(14)
    U = rng.standard_normal((60, 6))
    predict, errors = fit_by_column(U, np.sin(5.0 * U[:, [3, 0]]))
    new = rng.uniform(-1.5, 1.5, (40, 6))
    guess = predict(new)
    assert np.mean((guess - np.sin(5.0 * new[:, [3, 0]])) ** 2) < 0.02
    assert errors.shape == (60, 2)
