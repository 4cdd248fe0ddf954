"""Copies of records whose values other records share."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.metrics._equal_cells import extend_share, find_equal_cells

N, D = 400, 12
Rng = np.random.Generator


@pytest.fixture
def rng() -> Rng:
    return np.random.default_rng(811)


def draw_records(rng: Rng, n: int = N) -> np.ndarray:
    """Whole numbers from 0 to 40 that depend on each other: no value is that of one record."""
    common = rng.normal(0.0, 6.0, (n, 1))
    return np.clip(np.round(20.0 + common + rng.normal(0.0, 6.0, (n, D))), 0.0, 40.0)


def find(X: np.ndarray, Y: np.ndarray) -> tuple[list[int], list[int]]:
    rows, record = find_equal_cells(X, Y, np.random.default_rng(1))
    return np.flatnonzero(rows).tolist(), record[rows].tolist()


def test_copies_in_other_rows_are_found_with_their_records(rng: Rng) -> None:
    X = draw_records(rng)
    Y = X + rng.normal(0.0, 20.0, X.shape)
    Y[[3, 50, 90, 200]] = X[[7, 8, 9, 10]]
    assert find(X, Y) == ([3, 50, 90, 200], [7, 8, 9, 10])


def test_half_of_the_cells_of_a_record_are_found(rng: Rng) -> None:
    X = draw_records(rng)
    Y = X + rng.normal(0.0, 20.0, X.shape)
    for row in range(6):
        Y[row, :6], Y[row + 6, 6:] = X[100 + row, :6], X[100 + row, 6:]
    rows, records = find(X, Y)
    assert len(rows) >= 10 and set(records) <= set(range(100, 106))


def test_one_record_in_many_rows_is_one_event(rng: Rng) -> None:
    """Several rows of one person may be twins of a record by chance."""
    X = draw_records(rng)
    Y = X + rng.normal(0.0, 20.0, X.shape)
    Y[:9] = X[0]
    assert find(X, Y) == ([], [])


@pytest.mark.parametrize("case", ["other persons", "rounded noise", "exchanged cells", "mixed"])
def test_independent_rows_with_values_of_the_records_are_not(rng: Rng, case: str) -> None:
    for _ in range(10):
        X, others = draw_records(rng), draw_records(rng)
        noisy = X + rng.normal(0.0, 25.0, X.shape)
        Y = {
            "other persons": others,
            "rounded noise": np.clip(np.round(noisy), 0.0, 40.0),
            "exchanged cells": rng.permuted(X, axis=0),
            "mixed": np.where(rng.random((N, 1)) < 0.3, others, noisy),
        }[case]
        assert find(X, Y) == ([], [])


def test_twins_among_the_records_explain_twins_in_the_release(rng: Rng) -> None:
    persons = draw_records(rng, 60)
    X, Y = (persons[rng.integers(0, 60, N)] for _ in range(2))
    assert find(X, Y) == ([], [])


def test_one_column_shows_nothing(rng: Rng) -> None:
    X = draw_records(rng)[:, :1]
    assert find(X, X.copy()) == ([], [])


def test_extend_share_counts_and_falls_above_the_highest_levels() -> None:
    null = np.arange(100.0)
    found = extend_share(null, np.array([0.0, 50.0, 99.0, 119.0]))
    assert found[:2].tolist() == [1.0, 0.53]
    assert found[2] == pytest.approx(0.04 * np.exp(-0.5))  # two above the third highest
    assert found[3] == pytest.approx(0.03 * np.exp(-5.5))
