from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct, idct

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.sanitizers._fuzzy_selection import EnergyBounds, compute_energy_bounds
from ppdm_core.sanitizers.dct_fuzzy import RESOLUTION, DctFuzzy
from tests.support.tables import (
    KEY,
    fit_sanitizer,
    make_rows,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)


def find_secret_columns(sanitizer: DctFuzzy, rows: ArrayRows, key: bytes = KEY) -> list[int]:
    """Return the coefficient of each released column, found from all records."""
    fitted = fit_sanitizer(sanitizer, rows)
    X = scale_rows(rows, fitted)
    transform = sanitizer.make_transform(X.schema)
    C = transform.compute_coefficients(read_cells(X))
    Y = read_cells(run_sanitizer(sanitizer, rows, key, fitted).rows)
    gaps = np.abs(Y[:, :, None] - C[:, None, :]).max(axis=0)  # (s, m)
    assert (gaps.min(axis=1) <= 1e-9).all(), "a column is no coefficient"
    return gaps.argmin(axis=1).tolist()


def test_sanitize_releases_kept_coefficients_in_secret_order():
    rows, sanitizer = make_table(200, 8), DctFuzzy(b=0.05, p=0.1)
    kept = fit_sanitizer(sanitizer, rows)["kept"]
    orders = [find_secret_columns(sanitizer, rows, bytes([i]) * 32) for i in range(6)]
    assert 2 <= len(kept) < 8
    assert all(sorted(order) == kept for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_sanitize_random_selection_keeps_same_number():
    rows = make_table(200, 8)
    count = len(fit_sanitizer(DctFuzzy(b=0.05, p=0.1), rows)["kept"])
    sanitizer = DctFuzzy(b=0.05, p=0.1, selection="random")
    choices = [find_secret_columns(sanitizer, rows, bytes([i]) * 32) for i in range(30)]
    assert {len(set(choice)) for choice in choices} == {count}
    assert {i for choice in choices for i in choice} == set(range(8))


def test_public_parameters_other_key_unchanged():
    rows = make_table(100, 8)
    for selection in ("fuzzy", "random"):
        sanitizer = DctFuzzy(selection=selection, centre=True)
        one, two = (run_sanitizer(sanitizer, rows, bytes([i]) * 32) for i in (1, 2))
        assert one.public.columns == two.public.columns
        assert one.public.facts == two.public.facts
        assert one.public.loadings is None
        assert one.rows.schema == two.rows.schema
        assert len({(c.low, c.high) for c in one.rows.schema.numeric}) == 1


def test_column_order_one_known_record_reveals_all_records():
    # The attack of the docstring: from public facts, the release and one record only.
    rows = make_table(100, 8)
    order = tuple(reversed(rows.schema.names))
    sanitizer = DctFuzzy(b=0.05, p=0.1, centre=True, order=order)
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    public, Y = released.public, read_cells(released.rows)
    at = np.array([int(i) - 1 for i in str(public.facts["transform_order"]).split()])
    C = dct((X[0] - public.centre)[at], norm="ortho")
    columns = np.abs(Y[0][:, None] - C).argmin(axis=1)
    full = np.zeros((100, 8))
    full[:, columns] = Y
    X_hat = np.empty((100, 8))
    X_hat[:, at] = idct(full, norm="ortho", axis=1) + public.centre[at]
    pruned = np.setdiff1d(np.arange(8), fitted["kept"])
    lost = dct((X - public.centre)[:, at], norm="ortho", axis=1)[:, pruned]
    np.testing.assert_allclose(
        np.linalg.norm(X_hat - X, axis=1), np.linalg.norm(lost, axis=1), atol=1e-8
    )


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 9),
    st.sampled_from(["minmax", "none", "zscore"]),
    st.booleans(),
)
def test_sanitize_any_pair_distances_do_not_grow(seed: int, d: int, scale: str, centre: bool):
    rows = make_table(30, d, seed=seed)
    sanitizer = DctFuzzy(scale=scale, centre=centre)
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    Y = read_cells(released.rows)
    before, after = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (X, Y))
    highest = released.rows.schema.highs
    assert (after <= before + 1e-9 * highest[0]).all()
    if released.public.preserves_distances:
        np.testing.assert_allclose(after, before, atol=1e-9 * highest[0])
    assert (np.abs(Y) <= highest).all()


def test_order_parameter_sets_sequence_of_columns():
    rows = make_table(60, 6)
    order = [3, 0, 5, 1, 4, 2]
    names = tuple(rows.schema.names[i] for i in order)
    moved = ArrayRows(Schema(tuple(rows.schema.numeric[i] for i in order)), rows.whole.X[:, order])
    listed = DctFuzzy(order=names, centre=True)
    given_order = DctFuzzy(centre=True)
    assert fit_sanitizer(listed, rows)["kept"] == fit_sanitizer(given_order, moved)["kept"]
    bounds = [
        compute_energy_bounds(
            scale_rows(t, fit_sanitizer(s, t)),
            s.make_transform(scale_rows(t, fit_sanitizer(s, t)).schema),
        )
        for s, t in ((listed, rows), (given_order, moved), (given_order, rows))
    ]
    assert np.array_equal(bounds[0].high, bounds[1].high)
    assert not np.array_equal(bounds[0].high, bounds[2].high)


def test_sanitize_integer_columns_releases_no_integers():
    # The first of 16 coefficients is a quarter of the sum, here often an integer.
    X = np.random.default_rng(5).integers(0, 100, size=(500, 16)).astype(np.float64)
    schema = Schema(tuple(Numeric(f"x{i}", 0.0, 100.0) for i in range(16)))
    released = run_sanitizer(DctFuzzy(scale="none"), ArrayRows(schema, X))
    Y = read_cells(released.rows)
    assert not np.isin(Y, X).any()
    assert np.isclose(Y, np.rint(Y), atol=1e-6).any()
    assert np.array_equal(Y / released.public.grid, np.rint(Y / released.public.grid))


@pytest.mark.parametrize("unit", [2.0**-60, 1.0, 2.0**60])
def test_sanitize_other_units_scales_rounding(unit: float):
    rows = make_table(50, 5)
    columns = tuple(Numeric(c.name, c.low * unit, c.high * unit) for c in rows.schema.numeric)
    plain = read_cells(run_sanitizer(DctFuzzy(scale="none"), rows).rows)
    sanitizer = DctFuzzy(scale="none")
    other = run_sanitizer(sanitizer, ArrayRows(Schema(columns), rows.whole.X * unit))
    Y = read_cells(other.rows) / unit
    assert np.allclose(np.sort(Y[0]), np.sort(plain[0]), rtol=1e-9)  # another order of columns
    steps = read_cells(other.rows) / other.public.grid
    assert (steps % 2 == 1).all()
    assert np.abs(other.rows.schema.highs / other.public.grid / 2).max() > 1 / RESOLUTION / 2


def test_fit_records_without_energy_counted_and_released():
    rows = make_rows(np.vstack([make_table(40, 5).whole.X, np.zeros((2, 5))]))
    sanitizer = DctFuzzy(scale="none")
    assert (
        fit_sanitizer(sanitizer, rows)["kept"]
        == fit_sanitizer(sanitizer, make_table(40, 5))["kept"]
    )
    released = run_sanitizer(sanitizer, rows)
    assert list(released.counts.values()) == [2]
    Y = read_cells(released.rows)
    assert np.abs(Y[-2:]).max() < 1e-9 * np.abs(Y).max()


def get_error(sanitizer: DctFuzzy, rows: ArrayRows) -> str:
    with pytest.raises(BadInput) as error:
        sanitizer.fit(rows)
    return str(error.value)


def test_fit_infeasible_input_raises_with_remedy():
    assert "at least 2 features; there is 1" in get_error(DctFuzzy(), make_table(20, 1))
    assert "at least 2 records" in get_error(DctFuzzy(), make_table(1, 4))
    assert "no energy" in get_error(DctFuzzy(), make_rows(np.zeros((5, 4))))
    assert "by name" in get_error(DctFuzzy(order=["x0", "x1", "no"]), make_table(20, 3))
    assert "all 3 features" in get_error(DctFuzzy(order=["x0", "x1"]), make_table(20, 3))
    bounds = EnergyBounds(np.full(4, 0.25), np.full(4, 0.25), 1, 0)
    with pytest.raises(BadInput, match="no coefficient can be pruned"):
        DctFuzzy(b=0, p=0.25).choose_pruned(bounds)


@pytest.mark.parametrize(
    "parameters",
    [
        {"b": -0.1},
        {"b": 1.5},
        {"b": True},
        {"p": "0.2"},
        {"p": float("nan")},
        {"b": 0, "p": 0},
        {"b": 0.9, "p": 0.2},
        {"selection": "best"},
        {"centre": 1},
        {"order": "x0"},
        {"order": ["x0", "x0"]},
        {"order": [1, 2]},
    ],
    ids=str,
)
def test_parameters_invalid_raise(parameters: dict):
    with pytest.raises(BadInput, match="parameter of DctFuzzy must be"):
        DctFuzzy(**parameters)


def test_guarantee_is_empirical():
    rows = make_table(50)
    promise = DctFuzzy().guarantee(rows.schema, fit_sanitizer(DctFuzzy(), rows))
    assert promise.kind == "empirical"
    assert np.isinf([promise.ln_component, promise.ln_attribute, promise.ln_record]).all()
