"""The digest of a table's content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from warehouse.sql import quote_name

if TYPE_CHECKING:
    import duckdb


def content_digest(db: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> str:
    """Return a digest of the rows in any order; a repeated row counts twice."""
    cells = ", ".join(f"coalesce({quote_name(name)}::varchar, '')" for name in columns)
    query = f"""
        with texts as (select concat_ws('|', {cells}) as text from {table})
        select count(*), sum(md5_number_lower(text)), sum(md5_number_upper(text)) from texts
    """
    return hashlib.sha256(repr((list(columns), db.execute(query).fetchall())).encode()).hexdigest()
