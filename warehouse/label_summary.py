"""The classes of the label in a raw table, and the columns that they tell without a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb

from warehouse.column_summary import find_kind
from warehouse.columns import Column
from warehouse.sql import (
    build_category_condition,
    build_row_filter,
    cast_to_number,
    cast_to_text,
    column_types,
    hide_values,
    quote_name,
)

MIN_REVEALED_SHARE = 0.9  # of what varies in a column, from which on the label reveals it

CLASSES = """
with sizes as (select count(*) as records from ({cells}) group by label)
select count(*), coalesce(sum(records), 0), coalesce(min(records), 0) from sizes
"""
# The variance within classes over that of the column, both without bias.
NUMBER_REVEALED = """
with classes as (
    select count(x) as records, var_pop(x) * count(x) as within
    from ({cells}) where x is not null group by label
), whole as (select count(x) as n, var_samp(x) as variance from ({cells}))
select 1 - (sum(within) / nullif(any_value(n) - count(*), 0)) / nullif(any_value(variance), 0)
from classes, whole
"""
# By how much fewer cells are guessed wrongly (lambda of Goodman and Kruskal), in classes of two
# records or more.
TEXT_REVEALED = """
with pairs as (select label, x, count(*) as c from ({cells}) where x is not null group by label, x),
classes as (
    select label, max(c) as commonest, sum(c) as records
    from pairs group by label having records > 1
), whole as (
    select max(c) as commonest from (
        select sum(c) as c from pairs where label in (select label from classes) group by x
    )
)
select (sum(classes.commonest) - any_value(whole.commonest))
    / nullif(sum(records) - any_value(whole.commonest), 0)
from classes, whole
"""


@dataclass(frozen=True)
class LabelSummary:
    """The classes of a label, and the unreleased columns that it reveals."""

    name: str
    classes: int
    records: int  # that are not dropped
    smallest: int  # records of the smallest class
    revealed: dict[str, float] = field(default_factory=dict)  # column -> share of what varies in it

    @property
    def rate(self) -> float:
        """The share of persons whose row the label alone finds."""
        return self.classes / max(1, self.records)


@hide_values("Looking at the label")
def summarize_label(
    db: duckdb.DuckDBPyConnection, table: str, columns: tuple[Column, ...]
) -> LabelSummary | None:
    """Return what the label of a raw table reveals by itself; None without a label."""
    label = next((column for column in columns if column.role == "label"), None)
    if label is None:
        return None
    types = column_types(db, table)
    text = cast_to_text(label.name)
    kept = f"({build_row_filter(columns)}) and {build_category_condition(text, label)}"
    cells = f"select {text} as label from {table} where {kept}"
    classes, records, smallest = db.execute(CLASSES.format(cells=cells)).fetchall()[0]
    revealed = {}
    for column in columns:
        is_hidden = column.role in ("exclude", "identifier")
        if is_hidden and find_kind(types[column.name]) != "other":
            share = measure_revealed_share(db, table, column.name, types[column.name], text, kept)
            if share is not None and share >= MIN_REVEALED_SHARE:
                revealed[column.name] = share
    return LabelSummary(label.name, int(classes), int(records), int(smallest), revealed)


def measure_revealed_share(
    db: duckdb.DuckDBPyConnection, table: str, name: str, type_name: str, label: str, kept: str
) -> float | None:
    """Return the share of what varies in a column that the label tells; None if nothing varies."""
    statement = TEXT_REVEALED
    cell = cast_to_text(name)
    for number in list_numbers(name, type_name):
        is_number = f"{quote_name(name)} is null or coalesce(isfinite({number}), false)"
        if db.execute(f"select bool_and({is_number}) from {table} where {kept}").fetchall()[0][0]:
            statement, cell = NUMBER_REVEALED, number
            break
    cells = f"select {label} as label, {cell} as x from {table} where {kept}"
    share = db.execute(statement.format(cells=cells)).fetchall()[0][0]
    return None if share is None else float(share)


def list_numbers(name: str, type_name: str) -> Iterator[str]:
    """Yield SQL for a cell as a number, and as a time in seconds."""
    yield cast_to_number(name, type_name)
    yield f"epoch(try_cast({cast_to_text(name)} as timestamp))"
