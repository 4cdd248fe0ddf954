"""Every kind of source of a private table. One file for each kind, one line here."""

from __future__ import annotations

from warehouse.sources._reader import FileReader, Option, Reader
from warehouse.sources.csv import Csv
from warehouse.sources.duckdb import Duckdb
from warehouse.sources.parquet import Parquet
from warehouse.sources.postgresql import Postgresql

__all__ = ["SOURCES", "FileReader", "Option", "Reader"]

SOURCES: dict[str, Reader] = {
    "parquet": Parquet(),
    "duckdb": Duckdb(),
    "postgresql": Postgresql(),
    "csv": Csv(),  # last, because most texts could be one
}
