"""Every kind of source of a private table. One file for each kind, one line here."""

from __future__ import annotations

from warehouse.sources._reader import FileReader, Option, Reader
from warehouse.sources.csv import Csv
from warehouse.sources.duckdb import Duckdb
from warehouse.sources.excel import Excel
from warehouse.sources.parquet import Parquet
from warehouse.sources.postgresql import Postgresql
from warehouse.sources.sas import Sas
from warehouse.sources.spss import Spss
from warehouse.sources.stata import Stata

__all__ = ["SOURCES", "FileReader", "Option", "Reader"]

SOURCES: dict[str, Reader] = {
    "parquet": Parquet(),
    "duckdb": Duckdb(),
    "postgresql": Postgresql(),
    "excel": Excel(),
    "sas": Sas(),
    "spss": Spss(),
    "stata": Stata(),
    "csv": Csv(),  # last, because most texts could be one
}
