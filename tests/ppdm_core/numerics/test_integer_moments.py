"""Exact integer moments: by hand, against floats, and independent of how records are split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.integer_moments import (
    VALUE_BITS,
    IntegerMoments,
    check_plausible,
    compute_value_steps,
    sum_moments,
)

UNIT = 2**VALUE_BITS


def make_rows(X: np.ndarray, lows: list[float], highs: list[float]) -> ArrayRows:
    bounds = zip(lows, highs, strict=True)
    numeric = tuple(Numeric(f"x{j}", low, high) for j, (low, high) in enumerate(bounds))
    return ArrayRows(Schema(numeric), X)


def test_sum_moments_by_hand():
    rows = make_rows(np.array([[0.5, 1.0], [0.75, 0.0]]), [0, 0], [1, 1])
    found = sum_moments(rows)
    # About 1/2: (0, 1/2) and (1/4, -1/2).
    assert found.n == 2
    assert found.sums == [UNIT // 4, 0]
    assert found.products == [UNIT**2 // 16, -(UNIT**2) // 8, UNIT**2 // 2]
    assert found.squares == [UNIT**2 // 16, UNIT**2 // 2]
    np.testing.assert_array_equal(
        found.compute_covariance(rows.schema), [[1 / 32, -1 / 8], [-1 / 8, 1 / 2]]
    )


def test_value_steps_unit_width_is_two_to_minus_twenty():
    rows = make_rows(np.zeros((1, 3)), [0, -1, 0], [1, 2, 1e-9])
    assert compute_value_steps(rows.schema)[0] == 2.0**-20
    assert (rows.schema.widths / compute_value_steps(rows.schema) >= UNIT).all()
    assert (rows.schema.widths / compute_value_steps(rows.schema) < 2 * UNIT).all()


def test_covariance_close_to_that_of_floats():
    rng = np.random.default_rng(0)
    lows, highs = [0.0, -5.0, 100.0], [1.0, 5.0, 1e6]
    X = rng.uniform(lows, highs, (5000, 3))
    rows = make_rows(X, lows, highs)
    np.testing.assert_allclose(
        sum_moments(rows).compute_covariance(rows.schema), np.cov(X.T), rtol=1e-4, atol=1e-6
    )


def test_sums_at_the_bounds_are_exact():
    """The largest products of a full block: a float64 sum of all of them would be inexact."""
    n = 3 * 16_384 + 1
    X = np.ones((n, 2))
    X[0] = [0.0, 1.0]
    found = sum_moments(make_rows(X, [0, 0], [1, 1]))
    half = UNIT // 2
    assert found.sums == [(n - 2) * half, n * half]
    assert found.products == [n * half**2, (n - 2) * half**2, n * half**2]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 60),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_merge_any_split_gives_the_same_numbers(seed, n, cuts):
    X = np.random.default_rng(seed).random((n, 4))
    order = np.random.default_rng(seed + 1).permutation(n)
    rows = make_rows(X, [0] * 4, [1] * 4)
    first, second = sorted(1 + int(cut * (n - 2)) for cut in cuts)
    parts = [part for part in np.split(X[order], [first, second]) if len(part)]
    merged = [sum_moments(make_rows(part, [0] * 4, [1] * 4)) for part in parts]
    total = merged[0]
    for each in merged[1:]:
        total = total.merge(each)
    whole = sum_moments(rows)
    assert total.as_list() == whole.as_list()
    assert IntegerMoments.from_list(whole.as_list(), 4).as_list() == whole.as_list()
    a, b = (each.compute_covariance(rows.schema).tobytes() for each in (total, whole))
    assert a == b


def make_sound() -> IntegerMoments:
    X = np.random.default_rng(1).random((50, 3))
    return sum_moments(make_rows(X, [0] * 3, [1] * 3))


def test_check_plausible_real_records_accepted():
    check_plausible(make_sound(), 3)
    constant = sum_moments(make_rows(np.full((9, 2), 0.3), [0, 0], [1, 1]))
    check_plausible(constant, 3)


IMPLAUSIBLE = {
    "no records": {0: 0},
    "too few records": {0: 2},
    "negative count": {0: -5},
    "random count": {0: 2**100},
    "huge sum": {1: 50 * UNIT + 1},
    "huge negative sum": {2: -50 * UNIT - 1},
    "negative square": {4: -1},
    "huge square": {4: 50 * UNIT**2 + 1},
    "huge product": {5: 51 * UNIT**2},
    "correlation above one": {5: 50 * UNIT**2},
}


@pytest.mark.parametrize("case", IMPLAUSIBLE)
def test_check_plausible_impossible_sum_refused_without_a_name(case):
    values = make_sound().as_list()
    for place, value in IMPLAUSIBLE[case].items():
        values[place] = value
    with pytest.raises(BadInput, match="cannot be that of records within their bounds"):
        check_plausible(IntegerMoments.from_list(values, 3), 3)
