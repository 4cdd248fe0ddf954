"""Copies of records whose values other records share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ppdm_core.metrics._equal_cells import extend_share, find_equal_cells, fit_share
from ppdm_core.metrics.copied_records import find_copies

N, D = 400, 12
Rng = np.random.Generator
Tables = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def rng() -> Rng:
    return np.random.default_rng(811)


def draw_records(rng: Rng, n: int = N) -> np.ndarray:
    """Whole numbers from 0 to 40 that depend on each other: no value is that of one record."""
    common = rng.normal(0.0, 6.0, (n, 1))
    return np.clip(np.round(20.0 + common + rng.normal(0.0, 6.0, (n, D))), 0.0, 40.0)


def draw_answers(rng: Rng, n: int = 1000, d: int = 30) -> np.ndarray:
    """Answers from 1 to 5 that depend on the mood of the person."""
    return np.clip(np.round(3.0 + rng.normal(size=(n, 1)) + rng.normal(size=(n, d))), 1.0, 5.0)


def find(X: np.ndarray, Y: np.ndarray) -> tuple[list[int], list[int]]:
    rows, record = find_equal_cells(X, Y, np.random.default_rng(1))
    return np.flatnonzero(rows).tolist(), record[rows].tolist()


def copy_elsewhere(X: np.ndarray, Y: np.ndarray, count: int) -> np.ndarray:
    """Return the release with some records in the rows of others."""
    Y = Y.copy()
    Y[:count] = X[-count:]
    return Y


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


def test_copies_among_answers_that_everybody_gives_are_found(rng: Rng) -> None:
    X = draw_answers(rng)
    Y = np.clip(np.round(X + rng.normal(0.0, 3.0, X.shape)), 1.0, 5.0)
    rows, records = find(X, copy_elsewhere(X, Y, 50))
    assert rows == list(range(50)) and records == list(range(950, 1000))
    assert find(X, Y) == ([], [])


def test_copies_among_many_rounded_rows_are_found(rng: Rng) -> None:
    """More rows than are compared with all records."""
    X = np.round(rng.normal(0.0, 30.0, (4000, D)))
    Y = np.round(X + rng.normal(0.0, 30.0, X.shape))
    rows = np.argsort(np.abs(X).sum(axis=1))[:30]  # typical records, whose values are common
    copied = dict(zip(rows.tolist(), np.roll(rows, 1).tolist(), strict=True))
    Y[rows] = X[np.roll(rows, 1)]
    assert dict(zip(*find(X, Y), strict=True)) == copied


def test_one_record_in_many_rows_is_not(rng: Rng) -> None:
    """A single record may be equal to rows by chance, however many of them are equal."""
    X = draw_records(rng)
    Y = X + rng.normal(0.0, 20.0, X.shape)
    Y[:9] = X[0]
    assert find(X, Y) == ([], [])


def keep_some(X: np.ndarray, rng: Rng, share: float) -> Tables:
    return X, np.where(rng.random(X.shape) < share, X, rng.integers(1, 6, X.shape))


def keep_two_columns(rng: Rng) -> Tables:
    X = np.round(rng.normal(0.0, 50.0, (1000, 9)))
    return X, np.hstack([X[:, :2], X[:, 2:] + rng.normal(0.0, 50.0, (1000, 7))])


def mix_with_others(X: np.ndarray, rng: Rng) -> Tables:
    noisy = X + rng.normal(0.0, 25.0, X.shape)
    return X, np.where(rng.random((len(X), 1)) < 0.3, draw_records(rng, len(X)), noisy)


SAFE: dict[str, Callable[[Rng], Tables]] = {
    "other persons": lambda rng: (draw_records(rng), draw_records(rng)),
    "more other persons": lambda rng: (draw_records(rng), draw_records(rng, 900)),
    "fewer other persons": lambda rng: (draw_records(rng), draw_records(rng, 90)),
    "other persons mixed with noise": lambda rng: mix_with_others(draw_records(rng), rng),
    "rounded noise": lambda rng: (
        (X := draw_records(rng)),
        np.clip(np.round(X + rng.normal(0.0, 25.0, X.shape)), 0.0, 40.0),
    ),
    "exchanged cells": lambda rng: ((X := draw_records(rng)), rng.permuted(X, axis=0)),
    "answers of others": lambda rng: (draw_answers(rng), draw_answers(rng)),
    "randomized answers": lambda rng: keep_some(draw_answers(rng), rng, 0.3),
    "two columns as they are": keep_two_columns,
    "wide whole numbers": lambda rng: tuple(np.round(rng.normal(0, 200, (2, 569, 30)))),
    "few records": lambda rng: (draw_records(rng, 3), draw_records(rng, 50)),
    "constant columns": lambda rng: (np.ones((90, 4)), np.ones((90, 4))),
}


@pytest.mark.parametrize("case", SAFE)
def test_safe_releases_with_values_of_the_records_are_not(rng: Rng, case: str) -> None:
    for _ in range(5):
        X, Y = SAFE[case](rng)
        assert find(X, Y) == ([], [])
        assert not find_copies(X, Y)[0].any()


def test_twins_among_the_records_explain_twins_in_the_release(rng: Rng) -> None:
    persons = draw_records(rng, 60)
    X, Y = (persons[rng.integers(0, 60, N)] for _ in range(2))
    assert find(X, Y) == ([], [])


def test_one_column_shows_nothing(rng: Rng) -> None:
    X = draw_records(rng)[:, :1]
    assert find(X, X.copy()) == ([], [])


def test_extend_share_counts_and_falls_above_the_highest_levels() -> None:
    drawn = np.arange(100.0)
    found = extend_share(drawn, np.array([0.0, 50.0, 99.0, 119.0]), 0.25)
    assert found[:2].tolist() == [1.0, 0.53]
    assert found[2] == pytest.approx(0.04 * np.exp(-0.5))  # two above the third highest
    assert found[3] == pytest.approx(0.03 * np.exp(-5.5))


def test_fit_share_of_a_gamma_distribution(rng: Rng) -> None:
    scores = rng.gamma(9.0, 2.0, 100_000)
    assert fit_share(scores, np.array([30.0]))[0] == pytest.approx((scores > 30).mean(), rel=0.05)
    assert fit_share(np.zeros(10), np.array([1.0])).tolist() == [0.0]
