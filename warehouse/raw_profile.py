"""The profile of a raw table: counts, shares, means and row numbers from one scan, no cell."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from ppdm_core.model.errors import BadInput, ErrorList
from warehouse.column_survey import survey_key
from warehouse.columns import Column
from warehouse.expectations import Expectation, build_cell, list_figures, name_cell
from warehouse.sql import (
    ROW,
    build_category_condition,
    build_row_filter,
    cast_to_number,
    cast_to_text,
    column_types,
    count_where,
    hide_values,
    literal,
    quote_name,
)

ROWS = "rows"
ROWS_LEFT = "rows left"  # after rows with missing or unlisted cells were dropped
REPEATED = "repeated rows"  # of these, equal to an earlier one in all features and the label
MISSING = "missing"
NOT_A_NUMBER = "not a number"
NOT_FINITE = "not finite"
OUTSIDE = "outside the declared bounds"
UNKNOWN = "unknown categories"
DUPLICATES = "duplicate values"
CLASSES = "distinct classes"
CONSTANT = "constant"
VALUES = "values"
MEDIAN = """
select quantile_cont(x, 0.5) from (
    select {cell} as x from {table} where {kept} and {cell} is not null
    order by x limit {limit} offset {offset}
)
"""


def entry(check: str, column: Column, *, is_record_id: bool = False) -> str:
    """Return the key of a count in the profile."""
    return f"{check} in record id" if is_record_id else f"{check} in '{column.name}'"


def first_row(check: str, column: Column, *, is_record_id: bool = False) -> str:
    """Return the key of the first such data row, from 1; its value is 0 if there is none."""
    return f"first row {entry(check, column, is_record_id=is_record_id)}"


def check_columns(names_in_source: Sequence[str], columns: Sequence[Column], file: str) -> None:
    """Check that source and release file have the same columns."""
    name = os.path.basename(file)
    missing = [column.name for column in columns if column.name not in names_in_source]
    if missing and len(missing) == len(columns):
        raise BadInput(
            f"None of the declared columns is in {name}.",
            file=file,
            remedy="Check that its first line is a header, and 'path' and 'delimiter' in [source].",
        )
    errors = ErrorList()
    for each in missing:
        why = f"Column '{each}' of the release file is not in {name}."
        remedy = "Correct its spelling in [columns], or add it to the source."
        errors.add(BadInput(why, file=file, column=each, remedy=remedy))
    errors.raise_all()
    # Only now is it sure that the first line is a header, so that its names may be shown.
    declared = {column.name for column in columns}
    for extra in names_in_source:
        if extra not in declared:
            why = f"Column '{extra}' of {name} has no role in the release file."
            remedy = 'Declare it in [columns]; role = "exclude" leaves it out.'
            errors.add(BadInput(why, file=file, column=extra, remedy=remedy))
    errors.raise_all()


@hide_values("Profiling the table")
def profile(
    db: duckdb.DuckDBPyConnection,
    raw_table: str,
    columns: tuple[Column, ...],
    record_id: str | None,
    expectations: Sequence[Expectation] = (),
    *,
    more: Mapping[str, str] | None = None,
) -> dict[str, float | int]:
    """Return all figures that a table is judged by, from one scan and a sort for each median.

    ``more`` are further figures, as SQL over the cells ``x0``, ``x1``, ... of the columns and over
    ``kept``, which is true for a row that is not dropped.
    """
    types = column_types(db, raw_table)
    cells = [f"{ROW} + 1 as r", f"({build_row_filter(columns)}) as kept"]
    figures = {ROWS: "count(*)", ROWS_LEFT: count_where("kept"), **(more or {})}
    compared = []
    for position, column in enumerate(columns):
        x, empty = f"x{position}", f"e{position}"
        if column.name == record_id:
            cell, found = cast_to_text(column.name), _id_figures(column, x, empty)
        elif column.role in ("feature", "label") and column.type == "categorical":
            cell, found = cast_to_text(column.name), _category_figures(column, x, empty)
        elif column.role == "feature":
            cell = cast_to_number(column.name, types[column.name])
            found = _number_figures(column, x, empty)
        else:
            continue
        cells += [f"{cell} as {x}", f"{quote_name(column.name)} is null as {empty}"]
        figures |= found
        if column.name != record_id:
            compared.append(x)
    same = f"hash({', '.join(compared)})" if compared else "0"
    figures[REPEATED] = f"{count_where('kept')} - count(distinct if(kept, {same}, null))"
    by_name = {column.name: column for column in columns}
    for position, expectation in enumerate(expectations):
        if expectation.column is not None:
            cell = build_cell(by_name[expectation.column], types[expectation.column])
            cells.append(f"{cell} as {name_cell(position)}")
        figures |= {key: figure.sql for key, figure in list_figures(expectation, position)}
    statement = f"""
        with cells as (select {", ".join(cells)} from {raw_table})
        select {", ".join(figures.values())} from cells
    """
    row = db.execute(statement).fetchall()[0]
    profiled: dict[str, Any] = dict(zip(figures, row, strict=True))
    for column in columns:
        key = survey_key("median", column)
        if key in profiled and column.is_imputed:
            count = profiled[entry(VALUES, column)]
            cell = cast_to_number(column.name, types[column.name])
            profiled[key] = _find_median(db, raw_table, cell, build_row_filter(columns), count)
    return profiled


def _find_median(
    db: duckdb.DuckDBPyConnection, table: str, cell: str, kept: str, count: int
) -> float | None:
    """Return the median of the ``count`` filled cells of the rows that are kept.

    A sort may exceed the memory; the aggregate holds all cells in it.
    """
    if not count:
        return None
    (row,) = db.execute(
        MEDIAN.format(
            cell=cell, table=table, kept=kept, limit=2 - count % 2, offset=(count - 1) // 2
        )
    ).fetchall()
    return float(row[0])


def _counted(column: Column, bad: dict[str, str], *, is_record_id: bool = False) -> dict[str, str]:
    figures = {}
    for check, condition in bad.items():
        figures[entry(check, column, is_record_id=is_record_id)] = count_where(condition)
        figures[first_row(check, column, is_record_id=is_record_id)] = (
            f"coalesce(min(if({condition}, r, null)), 0)"
        )
    return figures


def _id_figures(column: Column, x: str, empty: str) -> dict[str, str]:
    duplicates = {entry(DUPLICATES, column, is_record_id=True): f"count({x}) - count(distinct {x})"}
    return _counted(column, {MISSING: empty}, is_record_id=True) | duplicates


def _category_figures(column: Column, x: str, empty: str) -> dict[str, str]:
    known = build_category_condition(x, column)
    figures = _counted(column, {MISSING: empty, UNKNOWN: f"not {empty} and not {known}"})
    if column.role == "label":
        figures[entry(CLASSES, column)] = f"count(distinct if(kept and {known}, {x}, null))"
    return figures


def _number_figures(column: Column, x: str, empty: str) -> dict[str, str]:
    bounds = [
        f"{x} {sign} {literal(bound)}"
        for sign, bound in (("<", column.low), (">", column.high))
        if isinstance(bound, float | int)
    ]
    bad = {
        MISSING: empty,
        NOT_A_NUMBER: f"not {empty} and {x} is null",
        NOT_FINITE: f"not isfinite({x})",
    }
    if bounds:
        bad[OUTSIDE] = f"isfinite({x}) and ({' or '.join(bounds)})"
    figures = _counted(column, bad)
    figures[entry(VALUES, column)] = count_where(f"kept and {x} is not null")
    if column.is_from_data:
        low, high = (
            f"{function}(if(kept and isfinite({x}), {x}, null))"
            if bound == "from_data"
            else literal(bound or 0.0)
            for function, bound in (("min", column.low), ("max", column.high))
        )
        figures[entry(CONSTANT, column)] = f"coalesce(not ({low} < {high}), true)::integer"
    return figures
