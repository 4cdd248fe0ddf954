"""Every format that a release can be published in. One file for each sink, one line here."""

from __future__ import annotations

from collections.abc import Callable
from io import RawIOBase
from typing import TYPE_CHECKING

from warehouse.sinks import parquet

if TYPE_CHECKING:
    import duckdb

# Each writes the result of a query to an open file.
SINKS: dict[str, Callable[[duckdb.DuckDBPyConnection, str, RawIOBase], None]] = {
    "parquet": parquet.write,
}
