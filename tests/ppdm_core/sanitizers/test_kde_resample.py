from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.scaling import Scaling
from ppdm_core.sanitizers import _resampling as resampling
from ppdm_core.sanitizers.kde_resample import KdeResample
from tests.support.class_tables import labels
from tests.support.tables import (
    LARGE,
    fit_sanitizer,
    make_schema,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)


def test_fit_deviations_are_those_of_the_classes():
    rows = make_table(LARGE)
    fitted = fit_sanitizer(KdeResample(), rows)
    X, label = read_cells(scale_rows(rows, fitted)), rows.whole.label
    expected = [np.zeros(5), *(X[label == c].std(axis=0, ddof=1) for c in (0, 1))]
    np.testing.assert_allclose(fitted["deviations"], [*expected, X.std(axis=0, ddof=1)], rtol=1e-5)
    assert fitted["counts"] == [0, *np.bincount(label), LARGE]


@pytest.mark.parametrize("bandwidth", ["paper", "corrected"])
def test_sanitize_rows_have_expected_moments(bandwidth):
    """The mean is unchanged; the variance grows by a fifth of the squared bandwidth."""
    rows, sanitizer = make_table(2000), KdeResample(bandwidth=bandwidth, clip=False, rows=20_000)
    fitted = fit_sanitizer(sanitizer, rows)
    X, released = (
        read_cells(scale_rows(rows, fitted)),
        run_sanitizer(sanitizer, rows, fitted=fitted).rows,
    )
    Y, h = read_cells(released), sanitizer.compute_bandwidths(rows.schema, fitted)
    for c in (0, 1):
        x, y = X[rows.whole.label == c], Y[labels(released) == c]
        variance = x.var(axis=0) + h[c + 1] ** 2 / 5
        assert np.all(np.abs(y.mean(axis=0) - x.mean(axis=0)) < 5 * np.sqrt(variance / len(y)))
        spread = stats.kurtosis(y, axis=0) + 2
        assert np.all(np.abs(y.var(axis=0) / variance - 1) < 5 * np.sqrt(spread / len(y)))


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["minmax", "zscore", "none"]),
    st.sampled_from(["paper", "corrected"]),
)
def test_sanitize_every_row_near_record_of_its_class(seed, scale, bandwidth):
    rows = make_table(40, seed=seed)
    sanitizer = KdeResample(scale=scale, bandwidth=bandwidth, clip=False, lonely="merge")
    fitted = fit_sanitizer(sanitizer, rows)
    stored = scale_rows(rows, fitted)
    X, released = read_cells(stored), run_sanitizer(sanitizer, rows, fitted=fitted).rows
    Y, label = read_cells(released), labels(released)
    h = sanitizer.compute_bandwidths(stored.schema, fitted)[
        label + 1
    ] + resampling.compute_grid_steps(stored.schema)
    is_near = np.all(np.abs(Y[:, None] - X[None]) <= h[:, None], axis=2)
    assert np.all(np.any(is_near & (label[:, None] == rows.whole.label[None]), axis=1))
    assert (released.schema.lows <= Y).all()
    assert (released.schema.highs >= Y).all()


def test_sanitize_clip_keeps_bounds():
    """Clipping comes last: with and without it, the rows are the same draws."""
    X = np.tile([make_schema().lows, make_schema().highs], (100, 1))
    X[::2] = make_table(100).whole.X
    rows = ArrayRows(make_schema(), X)
    inside, outside = (
        read_cells(run_sanitizer(KdeResample(clip=c), rows).rows) for c in (True, False)
    )
    assert inside.min() >= 0.0
    assert inside.max() <= 1.0
    assert outside.max() > 1.0
    assert np.array_equal(np.clip(outside, 0.0, 1.0), inside)


@pytest.mark.parametrize("scale", ["minmax", "zscore", "none"])
def test_sanitize_integers_are_whole_in_original_units(scale):
    rng = np.random.default_rng(3)
    columns = (Numeric("age", 0.0, 99.5), Numeric("income", -3.0, 7.0))
    X = np.column_stack([rng.integers(0, 100, 500), rng.normal(0, 1, 500).clip(-3, 7)])
    rows, sanitizer = ArrayRows(Schema(columns), X), KdeResample(scale=scale, integers=["age"])
    fitted = fit_sanitizer(sanitizer, rows)
    Y = Scaling.from_dict(fitted["scaling"]).undo(read_cells(run_sanitizer(sanitizer, rows).rows))
    np.testing.assert_allclose(Y[:, 0], np.rint(Y[:, 0]), atol=1e-9)
    assert Y[:, 0].min() >= -1e-9
    assert Y[:, 0].max() <= 99 + 1e-9
    assert np.mean(np.abs(Y[:, 1] - np.rint(Y[:, 1])) > 1e-3) > 0.9


def test_bandwidths_floor_is_share_of_range():
    rows = make_table(400)
    fitted = fit_sanitizer(KdeResample(), rows)
    columns = scale_rows(rows, fitted).schema
    usual = KdeResample().compute_bandwidths(columns, fitted)
    raised = KdeResample(bandwidth="floor", floor=0.25).compute_bandwidths(columns, fitted)
    np.testing.assert_array_equal(raised, np.maximum(usual, 0.25))
    assert usual.min() < 0.25 < usual.max()


def test_atom_is_largest_probability_of_one_value():
    rows = make_table(60)
    assert run_sanitizer(KdeResample(clip=False), rows).atom < 1e-9
    assert run_sanitizer(KdeResample(), rows).atom == pytest.approx(0.5, abs=1e-9)  # at a bound
    # x1 is 6 wide: an integer step is a sixth of the range
    sanitizer = KdeResample(clip=False, integers=("x1",))
    fitted = fit_sanitizer(sanitizer, rows)
    h = sanitizer.compute_bandwidths(rows.schema, fitted)[1:, 1].min()
    v = min(1.0, 1 / 6 / 2 / h)
    assert run_sanitizer(sanitizer, rows).atom == pytest.approx((3 * v - v**3) / 2)


def test_public_parameters_hold_no_bandwidths():
    public = run_sanitizer(KdeResample(bandwidth="floor", floor=0.1), make_table(60)).public
    assert dict(public.facts) == {"kernel": "epanechnikov", "bandwidth": "floor", "floor": 0.1}
    assert public.scales is None
    assert public.ranges is None
    assert public.grid is None


def test_guarantee_is_empirical():
    promise = KdeResample().guarantee(make_schema(), {})
    assert promise.kind == "empirical"
    assert promise.ln_record == math.inf


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({"rows": 0}, "'rows'"),
        ({"rows": 2.5}, "'rows'"),
        ({"rows": True}, "'rows'"),
        ({"bandwidth": "scott"}, "one of paper, corrected, floor"),
        ({"bandwidth": "floor"}, "'floor'"),
        ({"floor": 0.1}, "'floor'"),
        ({"bandwidth": "floor", "floor": 1.0}, "a share above 0 and below 1"),
        ({"clip": 1}, "'clip'"),
        ({"integers": "age"}, "'integers'"),
        ({"integers": [1]}, "'integers'"),
        ({"lonely": "drop"}, "one of refuse, merge"),
    ],
)
def test_parameters_invalid_raise(parameters, reported):
    with pytest.raises(BadInput, match=reported):
        KdeResample(**parameters)


def test_sanitize_unsuitable_table_raises():
    with pytest.raises(BadInput, match="at most 10 times the number of records"):
        run_sanitizer(KdeResample(rows=601), make_table(60))
    with pytest.raises(BadInput, match="'age' in 'integers' is not a numeric feature"):
        run_sanitizer(KdeResample(integers=["age"]), make_table(60))
    with pytest.raises(BadInput, match="at least 2 records; 1"):
        run_sanitizer(KdeResample(), make_table(1))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("pima", 0.03), ("svmguide1_train", 0.03)])
def test_knn_on_released_rows_loses_little_accuracy(shared_data: Path, name: str, most: float):
    """Tan, Ng (2007): error rates rise by at most three points."""
    from sklearn.neighbors import KNeighborsClassifier

    with (shared_data / f"{name}.csv").open() as file:
        _, *lines = csv.reader(file)
    X = np.array([line[:-1] for line in lines], dtype=np.float64)
    _, label = np.unique([line[-1] for line in lines], return_inverse=True)
    columns = tuple(
        Numeric(f"x{j}", low, high)
        for j, (low, high) in enumerate(zip(X.min(axis=0), X.max(axis=0), strict=True))
    )
    own = Schema(columns, label=Categorical("label", ("a", "b")))
    losses = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = np.split(order, [3 * len(X) // 4])
        rows = ArrayRows(own, X[train], label[train].astype(np.int32))
        sanitizer = KdeResample(bandwidth="paper")
        fitted = fit_sanitizer(sanitizer, rows)
        released = run_sanitizer(sanitizer, rows, bytes([seed]) * 32, fitted).rows
        scaling = Scaling.from_dict(fitted["scaling"])
        asked = (X[test] - scaling.offset) / scaling.unit
        right = [
            KNeighborsClassifier(11).fit(data, code).score(asked, label[test])
            for data, code in (
                (read_cells(scale_rows(rows, fitted)), label[train]),
                (read_cells(released), labels(released)),
            )
        ]
        losses.append(right[0] - right[1])
    assert np.mean(losses) <= most + 2 * np.std(losses) / np.sqrt(len(losses))
