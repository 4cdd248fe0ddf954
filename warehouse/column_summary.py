"""Figures of an unknown table that help to draft a release file.

They serve decisions only: none of them may be printed or written into the draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import duckdb
import numpy as np
from numpy.typing import NDArray

from warehouse.columns import Column
from warehouse.derivations import extract_date
from warehouse.sql import (
    NUMBERS,
    ROW,
    build_row_filter,
    cast_to_number,
    cast_to_text,
    column_types,
    count_where,
    hide_values,
    literal,
)

Kind = Literal["number", "float", "text", "boolean", "date", "other"]

WORDS_FOR_MISSING = "'?', '-', '.', 'na', 'n/a', 'nan', 'null', 'none', 'missing', 'unknown'"
DATE = (
    r"^\s*(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./](\d{4}|\d{2})|\d{1,2}:\d{2}"
    r"|\d{1,2}[-. ]+[a-z]{3,9}[-. ,]+\d{2,4}|[a-z]{3,9}\.? \d{1,2},? \d{4}"
    r"|(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))(\D|$)"
)
LEADING_ZERO = r"^\s*[-+]?0\d"  # 01067 is a postcode, not a number
NUMBER_LIKE = r"^\s*[^\w\s]{0,3}\s*\d[\d.,'\s]*\D{0,6}$"  # $1,000 or 12 kg
MAX_COUNTED_VALUES = 1_000  # distinct values that are counted; more are estimated


def figure(sql: str) -> Any:
    """Return a field that an aggregate fills; a cell is t as text, and n as a number."""
    return field(metadata={"sql": sql})


def count(condition: str) -> Any:
    """Return a field with the number of cells that meet a condition."""
    return figure(count_where(condition))


def match(pattern: str) -> str:
    """Return the condition that a cell matches a pattern in any case."""
    return f"regexp_matches(t, {literal(pattern)}, 'i')"


@dataclass(frozen=True)
class ColumnSummary:
    """Counts of the kinds of cells of one column."""

    name: str
    kind: Kind  # as the source stores it
    rows: int = figure("count(*)")
    distinct: int = figure("approx_count_distinct(t)")  # exact up to MAX_COUNTED_VALUES
    least: float = figure("coalesce(min(n) filter (isfinite(n)), 0)")
    most: float = figure("coalesce(max(n) filter (isfinite(n)), 0)")
    longest: int = figure("coalesce(max(length(t)), 0)")
    filled: int = count("t is not null")
    numbers: int = count("isfinite(n)")
    not_finite: int = count("not isfinite(n)")
    whole: int = count("isfinite(n) and n = floor(n)")
    leading_zeros: int = count(match(LEADING_ZERO))
    like_numbers: int = count(match(NUMBER_LIKE))
    dates: int = count(match(DATE))
    iso_dates: int = count(f"{extract_date('t')} is not null")
    spaced: int = count(r"regexp_matches(trim(t), '\s')")
    spelled_missing: int = count(f"lower(trim(t)) in ({WORDS_FOR_MISSING})")
    own_name: int = count("t = $name")

    @property
    def is_constant(self) -> bool:
        return self.distinct <= 1 or (self.numbers == self.filled and self.least == self.most)

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("number", "float", "text") and self.numbers == self.filled > 0

    @property
    def is_whole(self) -> bool:
        return self.is_numeric and self.whole == self.filled


FIGURES = {each.name: each.metadata["sql"] for each in fields(ColumnSummary) if each.metadata}


def find_kind(type_name: str) -> Kind:
    """Return the kind of a column type of DuckDB."""
    name = type_name.lower()
    if name.endswith("]"):
        return "other"
    kinds: dict[Kind, tuple[str, ...]] = {
        "float": ("float", "double"),
        "number": NUMBERS,
        "text": ("varchar", "enum", "uuid", "json"),
        "boolean": ("boolean",),
        "date": ("date", "time", "interval"),
    }
    return next((kind for kind, starts in kinds.items() if name.startswith(starts)), "other")


@hide_values("Looking at the table")
def summarize_columns(db: duckdb.DuckDBPyConnection, table: str) -> tuple[ColumnSummary, ...]:
    """Return the summary of every column.

    `summarize` of DuckDB rounds the share of missing cells, and reads no text as a number.
    """
    types = column_types(db, table)
    return tuple(summarize_column(db, table, name, types[name]) for name in types)


def summarize_column(
    db: duckdb.DuckDBPyConnection, table: str, name: str, type_name: str
) -> ColumnSummary:
    """Return the summary of one column."""
    kind = find_kind(type_name)
    text, number = cast_to_text(name), cast_to_number(name, type_name)
    if kind == "other":  # some cannot even be written as text
        text, number = "null::varchar", "null::double"
    cells = f"(select {text} as t, {number} as n from {table})"
    statement = f"select {', '.join(FIGURES.values())} from {cells}"
    found = db.execute(statement, {"name": name}).fetchall()[0]
    summary = ColumnSummary(name, kind, *found)
    if summary.distinct > MAX_COUNTED_VALUES:
        return summary
    counted = db.execute(f"select count(distinct t) from {cells}").fetchall()
    return replace(summary, distinct=counted[0][0])


@hide_values("Looking for empty cells")
def find_words_for_missing(
    db: duckdb.DuckDBPyConnection, table: str, summaries: Sequence[ColumnSummary]
) -> list[str]:
    """Return the usual words for a missing number, as columns of numbers spell them."""
    found: set[str] = set()
    for each in summaries:
        if 0 < each.numbers < each.filled == each.numbers + each.spelled_missing:
            text = cast_to_text(each.name)
            query = f"select distinct {text} from {table} where lower({text}) in"
            rows = db.execute(f"{query} ({WORDS_FOR_MISSING})").fetchall()
            found |= {word for (word,) in rows}
    return sorted(found)


@hide_values("Looking for an identifier")
def is_unique(db: duckdb.DuckDBPyConnection, table: str, name: str) -> bool:
    """Return whether every record has a different value, compared as the record id will be."""
    found = db.execute(
        f"select count(distinct {cast_to_text(name)}) = count(*) from {table}"
    ).fetchall()
    return bool(found[0][0])


@hide_values("Looking for an identifier")
def is_row_counter(db: duckdb.DuckDBPyConnection, table: str, name: str) -> bool:
    """Return whether the values count the rows, from any start."""
    value = f"try_cast({cast_to_text(name)} as hugeint)"
    found = db.execute(f"select min({value} - {ROW}) = max({value} - {ROW}) from {table}")
    return bool(found.fetchall()[0][0])


@hide_values("Looking for a label")
def count_categories(
    db: duckdb.DuckDBPyConnection, table: str, name: str, most: int
) -> dict[str, int]:
    """Return the number of records of each category, spelled as the release will compare it.

    Empty if there are more than ``most`` categories.
    """
    rows = db.execute(f"""
        select {cast_to_text(name)} as category, count(*)
        from {table} where category is not null
        group by category order by category limit {most + 1}
    """).fetchall()
    return {} if len(rows) > most else dict(rows)


@hide_values("Looking at the features")
def read_feature_rows(
    db: duckdb.DuckDBPyConnection,
    table: str,
    columns: tuple[Column, ...],
    names: Sequence[str],
    most: int,
) -> NDArray[np.float64]:
    """Return about ``most`` of the rows that are not dropped; missing values are NaN.

    The rows are spread over the table.
    """
    types = column_types(db, table)
    cells = ", ".join(
        f"{cast_to_number(name, types[name])} as x{i}" for i, name in enumerate(names)
    )
    every = f"(select greatest(1, count(*) // {most}) from {table})"
    found = db.execute(
        f"select {cells} from {table} "
        f"where {build_row_filter(columns)} and hash({ROW}) % {every} = 0"
    ).fetchnumpy()
    return np.column_stack([np.ma.filled(found[f"x{i}"], np.nan) for i in range(len(names))])
