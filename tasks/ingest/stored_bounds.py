"""Bounds that come from the private data: taken once, then used for every later release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ppdm_core.model.schema import Schema
from warehouse.columns import Column
from warehouse.stage_facts import ValidatedFacts, read_published_facts

if TYPE_CHECKING:
    from warehouse.transaction import Transaction

FROM_DATA = "from_data"


def apply_published_bounds(
    db: Transaction, dataset: str, columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Replace bounds from the data by those that earlier releases published.

    If they were taken again, one record beyond the old bounds would be published through the new
    ones.
    """
    known: dict[str, tuple[float, float]] = {}
    for facts in read_published_facts(db, dataset, ValidatedFacts):
        for column in facts.schema.numeric:
            if column.from_data:
                known.setdefault(column.name, (column.low, column.high))

    def settle(column: Column) -> Column:
        if column.name not in known:
            return column
        low, high = known[column.name]
        return replace(
            column,
            low=low if column.low == FROM_DATA else column.low,
            high=high if column.high == FROM_DATA else column.high,
        )

    return tuple(map(settle, columns))


def mark_bounds_from_data(schema: Schema, columns: tuple[Column, ...]) -> Schema:
    """Mark the columns whose bounds are, or once were, from the data."""
    names = {column.name for column in columns if column.is_from_data}
    return replace(
        schema,
        numeric=tuple(replace(column, from_data=column.name in names) for column in schema.numeric),
    )
