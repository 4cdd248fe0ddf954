"""The digest of a table's content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from warehouse.sql import quote_name

if TYPE_CHECKING:
    import duckdb


Totals = tuple[int, int, int]  # rows, and sums over hashes of the rows


def content_digest(db: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> str:
    """Return a digest of the rows in any order; a repeated row counts twice."""
    return digest_totals(columns, [sum_hashes(db, table, columns)])


def sum_hashes(db: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> Totals:
    """Return what the digest needs of the rows of a table, or of a part of it."""
    cells = ", ".join(f"coalesce({quote_name(name)}::varchar, '')" for name in columns)
    query = f"""
        with texts as (select concat_ws('|', {cells}) as text from {table})
        select count(*), coalesce(sum(md5_number_lower(text)), 0),
            coalesce(sum(md5_number_upper(text)), 0)
        from texts
    """
    rows, low, high = db.execute(query).fetchall()[0]
    return rows, int(low), int(high)


def digest_totals(columns: Sequence[str], parts: Sequence[Totals]) -> str:
    """Return the digest of a table from what was summed over its parts."""
    totals = tuple(map(sum, zip(*parts, strict=True)))
    return hashlib.sha256(repr((list(columns), [totals])).encode()).hexdigest()
