from __future__ import annotations

import json

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.scaling import Scaling, fit_scaling, moments
from tests.support.tables import LARGE, make_table


def make_rows(*columns: list[float], low: float = -10.0, high: float = 30.0) -> ArrayRows:
    schema = Schema(tuple(Numeric(f"x{j}", low, high) for j in range(len(columns))))
    return ArrayRows(schema, np.array(columns, dtype=np.float64).T)


def test_minmax_maps_declared_bounds_to_unit_interval():
    rows = make_rows([-10.0, 0.0, 30.0])
    scaled = fit_scaling(rows, "minmax").apply(rows)
    assert scaled.whole.X[:, 0].tolist() == [0.0, 0.25, 1.0]
    assert scaled.schema.numeric[0] == Numeric("x0", 0.0, 1.0)


def test_zscore_uses_divisor_n_minus_one():
    rows = make_rows([1.0, 2.0, 6.0])
    scaling = fit_scaling(rows, "zscore")
    assert scaling.offset[0] == pytest.approx(3.0)
    assert scaling.unit[0] == pytest.approx(2.7)  # the root of 7 is 2.646, published in two digits
    scaled = scaling.apply(rows)
    np.testing.assert_allclose(scaled.whole.X[:, 0], np.array([-2, -1, 3]) / 2.7)
    column = scaled.schema.numeric[0]
    assert (column.low, column.high) == pytest.approx((-13 / 2.7, 27 / 2.7))


def test_none_leaves_values_unchanged():
    rows = make_table(30)
    scaled = fit_scaling(rows, "none").apply(rows)
    assert np.array_equal(scaled.whole.X, rows.whole.X)
    assert scaled.schema == rows.schema


@pytest.mark.parametrize("kind", ["minmax", "zscore", "none"])
def test_scaling_undo_and_json_round_trip(kind):
    rows = make_table(200)
    scaling = fit_scaling(rows, kind)
    again = Scaling.from_dict(json.loads(json.dumps(scaling.as_dict())))
    X = again.apply(rows).whole.X
    assert np.array_equal(X, scaling.apply(rows).whole.X)
    np.testing.assert_allclose(again.undo(X), rows.whole.X, rtol=1e-12, atol=1e-12)
    assert again.kind == kind


def test_apply_values_inside_scaled_bounds_without_minus_zero():
    rows = make_rows([-10.0, -10.0 * (1 + 1e-15), 30.0, 99.0, 0.0], low=-10.0, high=30.0)
    X = fit_scaling(rows, "minmax").apply(rows).whole.X
    assert X.min() == 0.0
    assert X.max() == 1.0
    assert not np.signbit(X).any()
    centred = Scaling("none", np.zeros(1), np.ones(1)).apply(make_rows([-0.0, 1.0]))
    assert not np.signbit(centred.whole.X).any()


@pytest.mark.parametrize("value", [0.1, 3.0, 1e9 / 3, 0.0])
@pytest.mark.parametrize("n", [2, 3, 60])
def test_zscore_constant_column_raises(value, n):
    rows = make_rows(np.linspace(0, 1, n).tolist(), [value] * n, low=-1e9, high=1e9)
    with pytest.raises(BadInput, match="Column 'x1' is constant") as caught:
        fit_scaling(rows, "zscore")
    assert caught.value.column == "x1"
    assert str(value) not in str(caught.value)
    assert fit_scaling(rows, "minmax").apply(rows).n == n


@pytest.mark.parametrize("kind", ["minmax", "zscore", "none"])
def test_fit_scaling_zero_width_raises(kind):
    rows = make_rows([1.5, 1.5], low=1.5, high=1.5)
    with pytest.raises(BadInput, match="The bounds of column 'x0' are equal") as caught:
        fit_scaling(rows, kind)
    assert "Declare wider bounds" in str(caught.value)
    assert "1.5" not in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["minmax", "zscore", "none"])
def test_apply_value_not_finite_raises_with_row_and_column(kind, value):
    rows = make_table(60)
    rows.whole.X[41, 3] = value
    with pytest.raises(BadInput, match="Column 'x3' is not a finite number in row 42"):
        list(fit_scaling(rows, kind).apply(rows).blocks())


def test_moments_several_blocks_match_numpy():
    rows = make_table(LARGE)
    n, mean, cov = moments(rows)
    assert n == LARGE
    np.testing.assert_allclose(mean, rows.whole.X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(cov, np.cov(rows.whole.X.T), rtol=1e-9)


def test_moments_wide_bounds_keep_precision():
    column = (1e6 + np.random.default_rng(0).standard_normal(LARGE)).tolist()
    rows = make_rows(column, low=-1e15, high=1e15)
    _, mean, cov = moments(rows)
    assert mean[0] == pytest.approx(np.mean(column), rel=1e-14)
    assert cov[0, 0] == pytest.approx(np.var(column, ddof=1), rel=1e-6)
