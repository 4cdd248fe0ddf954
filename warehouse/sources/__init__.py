"""Where private tables come from: one module for each kind of source."""

from __future__ import annotations

from typing import Protocol

from duckdb import DuckDBPyConnection

from warehouse.columns import Source
from warehouse.sources import csv, duckdb, parquet


class Reader(Protocol):
    def digest(self, source: Source) -> str:
        """Identity of the content."""

    def load(self, db: DuckDBPyConnection, source: Source, table: str) -> None:
        """Create ``table`` with the columns of the source, and ``__ppdm_row``, the position of
        each row in the source from 0. The caller owns the transaction and quotes ``table``.
        """


SOURCES: dict[str, Reader] = {
    "csv": csv,
    "parquet": parquet,
    "duckdb": duckdb,
}
