"""Derived columns, added to a raw table when its source is loaded.

From then on they are columns of the table like all others: they are profiled, validated, released
and attacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from warehouse.columns import Column
from warehouse.derivations import FUNCTIONS, Function, build_result, read_cell
from warehouse.raw_profile import check_columns
from warehouse.sql import ROW, column_types, count_where, hide_values, quote_name

if TYPE_CHECKING:
    import duckdb

UNREADABLE = {  # what is read: one other cell, several, and the remedy
    "date": (
        "is not a date",
        "are not dates",
        "Write dates as YYYY-MM-DD, or leave such cells empty and declare 'missing'.",
    ),
    "number": (
        "is not a finite number",
        "are not finite numbers",
        "Correct them, or leave such cells empty and declare 'missing'.",
    ),
}


@hide_values("Deriving columns")
def add_derived_columns(
    db: duckdb.DuckDBPyConnection, table: str, columns: Sequence[Column], file: str
) -> None:
    """Add the derived columns to a raw table that has the columns of the source.

    Raise BadInput if a source is missing or has cells that the function cannot read.
    """
    derived = [column for column in columns if column.derivation is not None]
    if not derived:
        return
    types = column_types(db, table)
    _check_names(list(types), columns, file)
    _check_cells(db, table, derived, types, file)
    results = ", ".join(
        f"{build_result(column, types)} as {quote_name(column.name)}" for column in derived
    )
    db.execute(f"create or replace table {table} as select *, {results} from {table}").fetchall()


def _check_names(names: Sequence[str], columns: Sequence[Column], file: str) -> None:
    """Check that the source has every column that is not derived, and no other."""
    folded = {name.lower() for name in names}
    for column in columns:
        if column.derivation is not None and column.name.lower() in folded:
            raise BadInput(
                f"Column '{column.name}' is derived, and {file} has a column of this name.",
                file=file,
                column=column.name,
                remedy="Give the derived column another name.",
            )
    check_columns(names, [column for column in columns if column.derivation is None], file)


def _check_cells(
    db: duckdb.DuckDBPyConnection,
    table: str,
    derived: Sequence[Column],
    types: dict[str, str],
    file: str,
) -> None:
    """Check that every filled cell of the sources can be read as a date or a finite number."""
    pairs = list(_list_pairs(derived))
    figures = []
    for column, source in pairs:
        cell = read_cell(_get_function(column), source, types)
        is_bad = f"{quote_name(source)} is not null and not coalesce(isfinite({cell}), false)"
        figures += [count_where(is_bad), f"coalesce(min(if({is_bad}, {ROW} + 1, null)), 0)"]
    found = iter(db.execute(f"select {', '.join(figures)} from {table}").fetchall()[0])
    for (column, source), count, row in zip(pairs, found, found, strict=True):
        if count:
            one, several, remedy = UNREADABLE[_get_function(column).reads]
            cells = (
                f"1 cell that {one}, in row {row}"
                if count == 1
                else f"{count} cells that {several}; the first is in row {row}"
            )
            raise BadInput(
                f"Column '{column.name}' cannot be derived: column '{source}' of {file} has "
                f"{cells}.",
                file=file,
                column=column.name,
                remedy=remedy,
            )


def _list_pairs(derived: Sequence[Column]) -> Iterator[tuple[Column, str]]:
    for column in derived:
        assert column.derivation is not None
        for source in column.derivation.sources:
            yield column, source


def _get_function(column: Column) -> Function:
    assert column.derivation is not None
    return FUNCTIONS[column.derivation.function]


def count_shared_sources(columns: Sequence[Column]) -> int:
    """Return the largest number of features that depend on one column of the source.

    A statement about that column is a statement about all of these features.
    """
    counts: dict[str, int] = {}
    for column in columns:
        if column.role == "feature":
            sources = column.derivation.sources if column.derivation else (column.name,)
            for source in set(sources):
                counts[source] = counts.get(source, 0) + 1
    return max(counts.values(), default=1)
