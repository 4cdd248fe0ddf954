"""Every kind of source of a private table. One file for each kind, one line here."""

from __future__ import annotations

from typing import Protocol

from duckdb import DuckDBPyConnection

from warehouse.columns import Source
from warehouse.sources import csv, duckdb, parquet


class Reader(Protocol):
    """The module of one kind of source."""

    def digest(self, source: Source) -> str:
        """Return a digest of the content."""

    def load(self, db: DuckDBPyConnection, source: Source, table: str) -> None:
        """Create ``table`` with the columns of the source, and ``__ppdm_row``, the position of
        each row in the source from 0. The caller owns the transaction and quotes ``table``.
        """


SOURCES: dict[str, Reader] = {
    "csv": csv,
    "parquet": parquet,
    "duckdb": duckdb,
}
