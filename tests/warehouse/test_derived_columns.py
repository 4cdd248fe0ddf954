"""Derived columns: each function, its empty and unreadable cells, and hostile names."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import BadInput
from warehouse.columns import Column, Derivation
from warehouse.derivations import BEYOND_EDGES, DAYS_IN_YEAR, name_bins
from warehouse.derived_columns import add_derived_columns, count_shared_sources

NAMES = ('x"; drop table raw; --', "x'; drop table raw; --", "select", "a.b", "$1 ? %s {x}", "☃")


DB = duckdb.connect(":memory:")


def derive_column(function: str, sources: Sequence[str] = ("x",), **settings: Any) -> Column:
    options = {key: settings.pop(key) for key in ("edges", "date") if key in settings}
    return Column(
        "made", "feature", derivation=Derivation(function, tuple(sources), **options), **settings
    )


def compute(column: Column, cells: Sequence[Any], types: str = "x varchar") -> list[Any]:
    """Return the results for rows of cells; a cell stands for a row of one."""
    rows = [cell if isinstance(cell, tuple) else (cell,) for cell in cells]
    derivation = column.derivation
    assert derivation is not None
    DB.execute(f"create or replace table raw (__ppdm_row bigint, {types})")
    marks = ", ".join("?" * (len(rows[0]) + 1))
    values = [cell for i, row in enumerate(rows) for cell in (i, *row)]
    DB.execute(f"insert into raw values {', '.join([f'({marks})'] * len(rows))}", values)
    others = tuple(Column(name, "exclude") for name in dict.fromkeys(derivation.sources))
    add_derived_columns(DB, "raw", (*others, column), "t.csv")
    found = DB.execute("select made from raw order by __ppdm_row").fetchall()
    return [cell for (cell,) in found]


def test_year_and_month_text_dates_and_empty_cells() -> None:
    cells = ["2020-02-29", None, " 1999-12-31 ", "2021-07-04T23:59:00Z", "2021-07-04 08:00:00.5"]
    assert compute(derive_column("year"), cells) == [2020, None, 1999, 2021, 2021]
    assert compute(derive_column("month"), cells) == [2, None, 12, 7, 7]


@pytest.mark.extended
@pytest.mark.parametrize(
    "type_name",
    ["date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"],
)
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/New_York"])
def test_year_native_dates_same_in_every_time_zone(type_name: str, zone: str) -> None:
    with duckdb.connect(":memory:") as db:
        db.execute(f"set timezone = '{zone}'")
        instant = "timestamptz '2020-01-01 00:00:00+00'"
        cell = instant if type_name == "timestamptz" else f"('2020-01-01'::{type_name})"
        db.execute(f"create table raw as select 0::bigint as __ppdm_row, {cell} as x")
        add_derived_columns(db, "raw", (Column("x", "exclude"), derive_column("year")), "t")
        assert db.execute("select made from raw").fetchall() == [(2020,)]


def test_years_since_leap_days_counted_in_days() -> None:
    column = derive_column("years_since", date="2024-03-01")
    cells = ["2024-02-29", "2023-03-01", "2020-02-29", "2024-03-02", None, "1924-03-01"]
    days = [1, 366, 1462, -1, None, 36525]
    expected = [None if day is None else day / DAYS_IN_YEAR for day in days]
    assert compute(column, cells) == pytest.approx(expected)


def test_log1p_undefined_results_empty() -> None:
    found = compute(derive_column("log1p"), [0.0, math.e - 1, -1.0, -2.0, None], "x double")
    assert found == [0.0, pytest.approx(1.0), None, None, None]


def test_ratio_zero_divisor_and_overflow_empty() -> None:
    column = derive_column("ratio", ("a", "b"))
    rows = [(1.0, 4.0), (1.0, 0.0), (0.0, 0.0), (None, 2.0), (2.0, None), (1e300, 1e-300)]
    found = compute(column, rows, "a double, b double")
    assert found == [0.25, None, None, None, None, None]


@pytest.mark.parametrize(
    ("outside", "below", "above"),
    [
        ("clamp", "[0, 18)", "[65, 120.5]"),
        ("reject", BEYOND_EDGES, BEYOND_EDGES),
        ("other", BEYOND_EDGES, BEYOND_EDGES),
        ("drop_row", BEYOND_EDGES, BEYOND_EDGES),
    ],
)
def test_bin_edges_belong_to_the_upper_bin(outside: Any, below: str, above: str) -> None:
    edges = (0.0, 18.0, 65.0, 120.5)
    column = derive_column("bin", edges=edges, outside=outside)
    cells = [0.0, 17.99, 18.0, 65.0, 120.5, None, -0.1, 121.0]
    first, second, third = name_bins(edges)
    assert (first, second, third) == ("[0, 18)", "[18, 65)", "[65, 120.5]")
    expected = [first, first, second, third, third, None, below, above]
    assert compute(column, cells, "x double") == expected


@pytest.mark.parametrize(
    "cell",
    ["2021-02-29", "infinity", "epoch", "20200101", "2020-1-1", "1/2/2020", " ", "2020-01-01x"],
)
def test_year_other_texts_bad_input_without_the_cell(cell: str) -> None:
    with pytest.raises(BadInput) as caught:
        compute(derive_column("year"), ["2020-01-01", None, cell, "2020-01-01"])
    assert "column 'x' of t.csv has 1 cell that is not a date, in row 3" in str(caught.value)
    assert caught.value.column == "made"
    assert cell == " " or cell not in str(caught.value)


@pytest.mark.parametrize("function", ["log1p", "bin"])
@pytest.mark.parametrize("cell", ["canary", "nan", "inf"])
def test_number_functions_other_cells_bad_input(function: str, cell: str) -> None:
    column = derive_column(function, **({"edges": (0.0, 1.0, 2.0)} if function == "bin" else {}))
    with pytest.raises(
        BadInput, match="2 cells that are not finite numbers; the first is in row 2"
    ):
        compute(column, ["1", cell, cell])


def test_add_derived_columns_infinite_native_date_bad_input() -> None:
    with pytest.raises(BadInput, match="is not a date"):
        compute(derive_column("year"), [datetime.date(2020, 1, 1), "infinity"], "x date")


def test_add_derived_columns_name_of_the_source_bad_input() -> None:
    with pytest.raises(BadInput, match=r"Column 'made' is derived, and t\.csv has a column"):
        compute(derive_column("year"), [("2020-01-01", "1")], "x varchar, MADE varchar")


def test_add_derived_columns_source_missing_bad_input() -> None:
    with pytest.raises(BadInput, match="Column 'y' of the release file is not in"):
        compute(derive_column("ratio", ("x", "y")), ["1"])


@pytest.mark.parametrize("name", NAMES)
def test_add_derived_columns_hostile_names_are_names(name: str) -> None:
    quoted = name.replace('"', '""')
    columns = (
        Column(name, "exclude"),
        Column("y", "exclude"),
        Column(f"{name} log", "feature", derivation=Derivation("log1p", (name,))),
        Column(f"{name} ratio", "feature", derivation=Derivation("ratio", (name, "y"))),
    )
    with duckdb.connect(":memory:") as db:
        db.execute(f'create table raw (__ppdm_row bigint, "{quoted}" double, y double)')
        db.execute("insert into raw values (0, 0, 2), (1, 1, 2)")
        add_derived_columns(db, "raw", columns, "t.csv")
        found = db.execute(
            f'select "{quoted} log", "{quoted} ratio" from raw order by __ppdm_row'
        ).fetchall()
    assert found == [(0.0, 0.0), (pytest.approx(math.log(2)), 0.5)]


NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6))
DATES = st.one_of(st.none(), st.dates(datetime.date(1900, 1, 1), datetime.date(2199, 12, 31)))


@pytest.mark.extended
@settings(deadline=None, max_examples=10)
@given(st.lists(DATES, min_size=1, max_size=15))
def test_date_functions_any_dates_agree_with_pandas(dates: list[datetime.date | None]) -> None:
    series = pd.Series(pd.to_datetime(pd.Series(dates, dtype=object)))
    texts = [None if each is None else each.isoformat() for each in dates]
    for cells, types in ((dates, "x date"), (texts, "x varchar")):
        year, month = (compute(derive_column(name), cells, types) for name in ("year", "month"))
        since = compute(derive_column("years_since", date="2026-01-01"), cells, types)
        assert_equal(year, series.dt.year)
        assert_equal(month, series.dt.month)
        assert_equal(since, (pd.Timestamp("2026-01-01") - series).dt.days / 365.2425)


@pytest.mark.extended
@settings(deadline=None, max_examples=10)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=15))
def test_number_functions_any_numbers_agree_with_pandas(
    rows: list[tuple[float | None, float | None]],
) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b"], dtype=float)
    types = "a double, b double"
    with np.errstate(all="ignore"):
        logs = np.log1p(frame["a"]).replace([np.inf, -np.inf], np.nan)
        ratios = (frame["a"] / frame["b"]).replace([np.inf, -np.inf], np.nan)
    edges = [-1000.0, 0.0, 0.5, 1000.0]
    bins = pd.cut(frame["a"].clip(-1000, 1000), edges, right=False, labels=False)
    bins = bins.mask(frame["a"] >= 1000, 2)
    names = dict(enumerate(name_bins(edges)))
    assert_equal(compute(derive_column("ratio", ("a", "b")), rows, types), ratios)
    cells = [a for a, _ in rows]
    assert_equal(compute(derive_column("log1p"), cells, "x double"), logs)
    found = compute(derive_column("bin", edges=tuple(edges), outside="clamp"), cells, "x double")
    assert found == [names.get(each) for each in bins]


def assert_equal(found: list[Any], expected: Any) -> None:
    ours = np.array([np.nan if each is None else each for each in found], dtype=float)
    np.testing.assert_allclose(ours, np.asarray(expected, dtype=float), rtol=1e-12, atol=1e-12)


def test_count_shared_sources_derived_and_released_columns_added() -> None:
    date, plain = Column("x", "exclude"), Column("y", "feature", "numeric")
    year = Column("year", "feature", derivation=Derivation("year", ("x",)))
    month = Column("month", "feature", derivation=Derivation("month", ("x",)))
    ratio = Column("ratio", "feature", derivation=Derivation("ratio", ("y", "z")))
    assert count_shared_sources((date, plain, year)) == 1
    assert count_shared_sources((date, plain, year, month)) == 2
    assert count_shared_sources((date, plain, ratio)) == 2
    assert count_shared_sources((date,)) == 1
