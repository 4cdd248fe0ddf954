"""Bounds that come from the private data: taken once, then kept for every later release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ppdm_core.model.schema import Schema
from tasks.sanitize.stored_fit import published_facts
from warehouse.columns import Column

if TYPE_CHECKING:
    import duckdb

FROM_DATA = "from_data"


def with_known_bounds(
    db: duckdb.DuckDBPyConnection, dataset: str, columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    """The columns with the bounds that earlier releases published, where they are from the data.

    Taken anew, one record beyond the old bounds would be published through the new ones.
    """
    known: dict[str, tuple[float, float]] = {}
    for facts in published_facts(db, dataset, "validated"):
        for column in facts["schema"]["numeric"]:
            if column["from_data"]:
                known.setdefault(column["name"], (column["low"], column["high"]))

    def settled(column: Column) -> Column:
        if column.name not in known:
            return column
        low, high = known[column.name]
        return replace(
            column,
            low=low if column.low == FROM_DATA else column.low,
            high=high if column.high == FROM_DATA else column.high,
        )

    return tuple(map(settled, columns))


def marked(schema: Schema, columns: tuple[Column, ...]) -> Schema:
    """The schema with the mark of columns whose bounds are, or once were, from the data."""
    names = {column.name for column in columns if FROM_DATA in (column.low, column.high)}
    return replace(
        schema,
        numeric=tuple(replace(column, from_data=column.name in names) for column in schema.numeric),
    )
