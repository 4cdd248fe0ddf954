"""Figures of an unknown table that help to draft a release file.

They serve decisions only: none of them may be printed or written into the draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb
import numpy as np
from numpy.typing import NDArray

from warehouse.columns import Column
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

WORDS_FOR_MISSING = ("?", "-", ".", "na", "n/a", "nan", "null", "none", "missing", "unknown")
DATE = (
    r"^\s*(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./](\d{4}|\d{2})|\d{1,2}:\d{2}"
    r"|\d{1,2}[-. ]+[a-z]{3,9}[-. ,]+\d{2,4}|[a-z]{3,9}\.? \d{1,2},? \d{4}"
    r"|(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))(\D|$)"
)
LEADING_ZERO = r"^\s*[-+]?0\d"  # 01067 is a postcode, not a number
NUMBER_LIKE = r"^\s*[^\w\s]{0,3}\s*\d[\d.,'\s]*\D{0,6}$"  # $1,000 or 12 kg


@dataclass(frozen=True)
class ColumnSummary:
    """Counts of the kinds of cells of one column."""

    name: str
    kind: Kind  # as the source stores it
    rows: int
    filled: int
    distinct: int  # an estimate
    numbers: int  # read as finite numbers
    not_finite: int
    whole: int
    least: float
    most: float
    leading_zeros: int
    like_numbers: int
    dates: int
    spaced: int
    spelled_missing: int
    longest: int
    own_name: int  # equal to the column's own name

    @property
    def is_constant(self) -> bool:
        return self.distinct <= 1 or (self.numbers == self.filled and self.least == self.most)

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("number", "float", "text") and self.numbers == self.filled > 0

    @property
    def is_whole(self) -> bool:
        return self.is_numeric and self.whole == self.filled


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
    """Return the summary of every column, in one scan of the table."""
    types = column_types(db, table)
    cells, figures = [], []
    for i, (name, type_name) in enumerate(types.items()):
        if find_kind(type_name) == "other":  # some cannot even be written as text
            cells += [f"null::varchar as t{i}", f"null::double as n{i}"]
        else:
            cells += [f"{cast_to_text(name)} as t{i}", f"{cast_to_number(name, type_name)} as n{i}"]
        figures += _build_aggregates(f"t{i}", f"n{i}", name)
    statement = f"""
        with cells as (select {", ".join(cells)} from {table})
        select {", ".join(figures)} from cells
    """
    found = db.execute(statement).fetchall()[0]
    width = len(figures) // len(types)
    return tuple(
        ColumnSummary(name, find_kind(type_name), *found[i * width : (i + 1) * width])
        for i, (name, type_name) in enumerate(types.items())
    )


def _build_aggregates(t: str, n: str, name: str) -> list[str]:
    """Return the SQL aggregates in the order of the fields of ColumnSummary."""
    finite = f"if(isfinite({n}), {n}, null)"
    missing = ", ".join(literal(word) for word in WORDS_FOR_MISSING)
    return [
        "count(*)",
        f"count({t})",
        f"approx_count_distinct({t})",
        f"count({finite})",
        count_where(f"not isfinite({n})"),
        count_where(f"isfinite({n}) and {n} = floor({n})"),
        f"coalesce(min({finite}), 0)",
        f"coalesce(max({finite}), 0)",
        count_where(f"regexp_matches({t}, {literal(LEADING_ZERO)})"),
        count_where(f"regexp_matches({t}, {literal(NUMBER_LIKE)})"),
        count_where(f"regexp_matches({t}, {literal(DATE)}, 'i')"),
        count_where(rf"regexp_matches(trim({t}), '\s')"),
        count_where(f"lower(trim({t})) in ({missing})"),
        f"coalesce(max(length({t})), 0)",
        count_where(f"{t} = {literal(name)}"),
    ]


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
