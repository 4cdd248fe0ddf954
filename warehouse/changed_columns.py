"""Counts of the cells that changed between two versions of a table, by column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from warehouse.columns import RESERVED, Column
from warehouse.sql import (
    cast_to_number,
    cast_to_text,
    column_types,
    count_where,
    hide_values,
    literal,
)

BEFORE = f"{RESERVED}before"

COMPARED = """
with now as ({now}), before as ({before})
select count(*){changed} from now join before using (identity)
"""


@hide_values("Comparing the table with the one before")
def count_changed_cells(
    db: duckdb.DuckDBPyConnection,
    now: str,
    before: Path,
    columns: Sequence[Column],
    record_id: str,
) -> tuple[int, dict[str, int]]:
    """Return the number of common records, and how many of them differ in each column.

    ``before`` is a Parquet file.
    """
    db.execute(f"create temp view {BEFORE} as from read_parquet({literal(str(before))})")
    known = column_types(db, BEFORE)
    features = [column for column in columns if column.role == "feature" and column.name in known]
    if record_id not in known:
        return 0, {}
    statement = COMPARED.format(
        now=_cells(db, now, features, record_id),
        before=_cells(db, BEFORE, features, record_id),
        changed="".join(
            f", {count_where(f'now.c{i} is distinct from before.c{i}')}"
            for i in range(len(features))
        ),
    )
    common, *changed = db.execute(statement).fetchall()[0]
    names = (column.name for column in features)
    return int(common), dict(zip(names, map(int, changed), strict=True))


def _cells(
    db: duckdb.DuckDBPyConnection, table: str, features: Sequence[Column], record_id: str
) -> str:
    types = column_types(db, table)
    cells = (
        cast_to_number(column.name, types[column.name])
        if column.type == "numeric"
        else cast_to_text(column.name)
        for column in features
    )
    named = "".join(f", {cell} as c{i}" for i, cell in enumerate(cells))
    return f"select {cast_to_text(record_id)} as identity{named} from {table}"
