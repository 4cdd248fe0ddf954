"""Every format that a release can be published in. One file for each sink, one line here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.sinks import parquet

if TYPE_CHECKING:
    import duckdb

SINKS: dict[str, Callable[[duckdb.DuckDBPyConnection, str, Path], None]] = {
    "parquet": parquet.write,
}
