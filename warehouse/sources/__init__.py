"""Every kind of source of a private table. One file for each kind, one line here."""

from __future__ import annotations

from warehouse.sources._reader import FileReader, Option, Reader
from warehouse.sources.csv import Csv
from warehouse.sources.duckdb import Duckdb
from warehouse.sources.parquet import Parquet

__all__ = ["SOURCES", "FileReader", "Option", "Reader"]

SOURCES: dict[str, Reader] = {
    "parquet": Parquet(),
    "duckdb": Duckdb(),
    "csv": Csv(),  # last, because most texts could be one
}
