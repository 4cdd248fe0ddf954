from __future__ import annotations

import numpy as np
import pytest
from scipy.fft import dct
from scipy.linalg import hadamard

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from ppdm_core.two_tables.comparison import compare_tables
from ppdm_core.two_tables.mixed_records import (
    find_moved_columns,
    find_permuted_columns,
    has_moments_of_records,
)
from ppdm_core.two_tables.tables import Table

N, D = 256, 6
Rng = np.random.Generator


@pytest.fixture
def rng() -> Rng:
    return np.random.default_rng(20260)


def make_table(A: Floats, prefix: str = "x") -> Table:
    return Table("t.csv", {f"{prefix}{j}": column for j, column in enumerate(A.T)})


def draw_records(rng: Rng, n: int = N, d: int = D) -> Floats:
    return np.asarray(np.exp(rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / 3) + 5.0)


def shares_moments(X: Floats, Y: Floats, prefix: str = "x") -> bool:
    return has_moments_of_records(make_table(X), make_table(Y, prefix), None)


def find_moved(X: Floats, Y: Floats) -> list[str]:
    return list(find_moved_columns(make_table(X), make_table(Y), None))


def make_mixing(name: str, rng: Rng) -> Floats:
    if name == "cosine":
        return np.asarray(dct(np.eye(N), axis=0, norm="ortho"))
    return np.asarray(hadamard(N) / np.sqrt(N)) if name == "hadamard" else random_orthogonal(N, rng)


@pytest.mark.parametrize("prefix", ["x", "own"])
@pytest.mark.parametrize("mixing", ["cosine", "hadamard", "secret"])
def test_moments_orthogonal_mixing_of_records_found(rng: Rng, mixing: str, prefix: str) -> None:
    X, Q = draw_records(rng), make_mixing(mixing, rng)
    assert shares_moments(X, Q @ X, prefix)
    assert shares_moments(X, Q @ (X - X.mean(axis=0)), prefix)


@pytest.mark.parametrize("mixing", ["cosine", "hadamard", "secret"])
def test_moments_mixing_with_mean_and_noise_found(rng: Rng, mixing: str) -> None:
    X = draw_records(rng, d=12)
    centre = X.mean(axis=0)
    Y = centre + make_mixing(mixing, rng) @ (X - centre)
    assert shares_moments(X, Y)
    assert shares_moments(X, Y + 0.02 * X.std(axis=0) * rng.standard_normal(X.shape))


@pytest.mark.parametrize("d", [2, 3, 6, 20])
def test_moments_independent_rows_not_found(rng: Rng, d: int) -> None:
    for _ in range(20):
        X = draw_records(rng, d=d)
        S, spread = np.cov(X.T), X.std(axis=0)
        drawn = rng.multivariate_normal(X.mean(axis=0), S, N)
        noisy = X + spread * rng.laplace(size=X.shape)
        for Y in (drawn, noisy, X[rng.integers(0, N, N)], np.tile(X.mean(axis=0), (N, 1))):
            assert not shares_moments(X, Y)
        assert not shares_moments(X, drawn, "own")


def test_moments_independent_columns_other_names_not_found(rng: Rng) -> None:
    """The eigenvalues of unrelated columns differ little from sample to sample."""
    for _ in range(20):
        X, Y = rng.standard_normal((2, 2000, 20))
        assert not shares_moments(X, Y, "own")


def test_moved_columns_each_by_another_number_of_rows_found(rng: Rng) -> None:
    X = draw_records(rng)
    Y = np.column_stack([np.roll(x, 11 * (j + 1)) for j, x in enumerate(X.T)])
    noise = 0.2 * X.std(axis=0) * rng.standard_normal(X.shape)
    assert find_moved(X, Y + noise) == [f"x{j}" for j in range(D)]
    assert find_moved(X, Y[::-1] + noise) == [f"x{j}" for j in range(D)]


def test_moved_columns_cosine_transform_with_noise_found(rng: Rng) -> None:
    X = draw_records(rng)
    Y = dct(X, axis=0, norm="ortho") + 0.5 * X.std(axis=0) * rng.standard_normal(X.shape)
    assert len(find_moved(X, Y)) == D


@pytest.mark.parametrize("is_sorted", [False, True])
def test_moved_columns_noise_in_place_not_found(rng: Rng, is_sorted: bool) -> None:
    for scale in (0.1, 1.0, 4.0):
        X = draw_records(rng)
        X = X[X[:, 0].argsort()] if is_sorted else X
        Y = X + scale * X.std(axis=0) * rng.laplace(size=X.shape)
        assert find_moved(X, Y) == []
        assert find_moved(X, Y[Y[:, 0].argsort()]) == []


def test_compare_tables_mixed_records_leak_and_doubt(rng: Rng) -> None:
    X = draw_records(rng)
    moved = np.column_stack([np.roll(x, 11 * (j + 1)) for j, x in enumerate(X.T)])
    noisy = moved + 0.1 * X.std(axis=0) * rng.standard_normal(X.shape)
    leaks = compare_tables(make_table(X), make_table(noisy)).leaks
    assert any("moved or transformed along the rows" in each for each in leaks)
    mixed = compare_tables(make_table(X), make_table(random_orthogonal(N, rng) @ X))
    assert any("Records may be mixed" in each for each in mixed.doubts) and not mixed.leaks


def find_permuted(X: Floats, Y: Floats) -> list[str]:
    return list(find_permuted_columns(make_table(X), make_table(Y, "y"), None))


def test_permuted_columns_found_under_any_name(rng: Rng) -> None:
    X = draw_records(rng)
    Y = np.column_stack([rng.permutation(X[:, 3]), X[::-1, 0], X[:, 1] + 0.1])
    assert find_permuted(X, Y) == ["y0", "y1"]
    doubts = compare_tables(make_table(X), make_table(rng.permuted(X, axis=0))).doubts
    assert any("exactly those of the original, in another order" in each for each in doubts)


def test_permuted_columns_of_text_found_and_the_label_is_not(rng: Rng) -> None:
    names = np.array([f"town {i % 30}" for i in range(N)])
    ours = Table("a.csv", {"town": names, "label": names})
    theirs = Table("b.csv", {"place": rng.permutation(names).astype("U40"), "label": names[::-1]})
    assert list(find_permuted_columns(ours, theirs, "label")) == ["place"]


def test_permuted_columns_few_values_or_other_counts_are_not(rng: Rng) -> None:
    X = draw_records(rng)
    answers = rng.integers(0, 5, (N, 1)).astype(float)
    assert find_permuted(answers, rng.permutation(answers)) == []
    answers[:12] = np.nan  # every empty cell is one value
    assert find_permuted(answers, rng.permutation(answers)) == []
    assert find_permuted(X, X[:-1]) == []
    rounded = np.round(X)
    assert find_permuted(rounded, np.vstack([rounded[:-1], rounded[:1]])) == []


def test_permuted_columns_row_numbers_ranks_and_kept_columns_are_not(rng: Rng) -> None:
    numbers = rng.permutation(N)[:, None] * 3.0 + 1.0
    assert find_permuted(numbers, rng.permutation(numbers)) == []
    X = draw_records(rng)
    assert find_permuted(X, X) == []
