"""Read a source whose columns of numbers have words, such as NA, for missing ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.column_summary import ColumnSummary, find_words_for_missing, summarize_columns
from warehouse.sources import SOURCES
from warehouse.sources.csv import EMPTY, SEPARATOR

if TYPE_CHECKING:
    import duckdb

    from warehouse.columns import Source


def load_and_summarize(
    db: duckdb.DuckDBPyConnection, source: Source, table: str
) -> tuple[Source, tuple[ColumnSummary, ...]]:
    """Create ``table`` and summarize its columns; return the source with its words, if any."""
    reader = SOURCES[source.kind]
    reader.load(db, source, table)
    summaries = summarize_columns(db, table)
    words = find_words_for_missing(db, table, summaries)
    if not words or EMPTY not in reader.options:
        return source, summaries
    source = replace(source, options={**source.options, EMPTY: SEPARATOR.join(words)})
    db.execute(f"drop table {table}").fetchall()
    reader.load(db, source, table)
    return source, summarize_columns(db, table)
