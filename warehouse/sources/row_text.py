"""The digest of rows in their order, whatever stores them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from warehouse.sources.file_parts import describe_query
from warehouse.sql import quote_name

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 65_536


def digest_rows(db: duckdb.DuckDBPyConnection, table: str, heading: str = "") -> str:
    """Return a digest of names, types and rows in their order, and of a heading.

    The caller sets the time zone to UTC, or the digest would depend on the machine.
    """
    columns = list(describe_query(db, f"select * from {table}").items())
    total = hashlib.sha256((repr(columns) + heading).encode())
    # Each cell carries its length, so that no two tables give the same text.
    cells = (
        f"coalesce(strlen({name}::varchar) || ':' || {name}::varchar, '-')"
        for name in (quote_name(name) for name, _ in columns)
    )
    # A scan keeps the order of the rows (preserve_insertion_order), so nothing is sorted.
    rows = db.sql(f"select concat({', '.join(cells)}) from {table}")
    for batch in rows.to_arrow_reader(BATCH_ROWS):
        total.update("".join(batch.column(0).to_pylist()).encode())
    return total.hexdigest()
