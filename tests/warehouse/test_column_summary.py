"""The figures of an unknown table that a draft is made from."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from warehouse.column_summary import summarize_columns
from warehouse.scratch import open_scratch_database
from warehouse.sql import ROW

TABLE = "main.source"


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_scratch_database() as connection:
        yield connection


def test_summarize_columns_few_values_counted_exactly(db: duckdb.DuckDBPyConnection) -> None:
    """The estimate of DuckDB differs from the count of 32 texts already."""
    counts = (1, 2, 10, 11, 30, 31, 60, 100, 101, 250)
    cells = ", ".join(f"'v' || (i % {n}) as c{n}" for n in counts)
    db.execute(f"create table {TABLE} as select i as {ROW}, {cells} from range(1000) r(i)")
    assert [each.distinct for each in summarize_columns(db, TABLE)] == list(counts)
    estimates = ", ".join(f"approx_count_distinct(c{n})" for n in counts)
    assert db.execute(f"select {estimates} from {TABLE}").fetchall() != [counts]


def test_summarize_columns_one_missing_cell_of_many_is_counted(
    db: duckdb.DuckDBPyConnection,
) -> None:
    cell = "nullif(i, 7)"
    db.execute(f"create table {TABLE} as select i as {ROW}, {cell} as x from range(100000) r(i)")
    (summary,) = summarize_columns(db, TABLE)
    assert (summary.rows, summary.filled, summary.numbers) == (100_000, 99_999, 99_999)
    assert (summary.least, summary.most, summary.is_whole) == (0, 99_999, True)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("cell", "field"),
    [
        ("12", "numbers"),
        ("inf", "not_finite"),
        ("12.0", "whole"),
        ("0123", "leading_zeros"),
        ("$1,000", "like_numbers"),
        ("3 May 2021", "dates"),
        ("a b", "spaced"),
        (" N/A ", "spelled_missing"),
        ('it\'s "odd" $name', "own_name"),
    ],
)
def test_summarize_columns_cell_of_each_kind_is_counted(
    db: duckdb.DuckDBPyConnection, cell: str, field: str
) -> None:
    name = '"it\'s ""odd"" $name"'
    db.execute(f"create table {TABLE} ({ROW} bigint, {name} varchar)")
    db.execute(f"insert into {TABLE} values (0, ?), (1, 'other'), (2, null)", [cell])
    (summary,) = summarize_columns(db, TABLE)
    assert getattr(summary, field) == 1
    assert (summary.rows, summary.filled, summary.distinct) == (3, 2, 2)
