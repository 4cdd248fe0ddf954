"""A DuckDB file beside the Parquet file, with the one table `data`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.sinks._sink import FileSink

if TYPE_CHECKING:
    import pyarrow as pa

FILE, ROWS = "data.duckdb", "released"
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


class Duckdb(FileSink):
    """DuckDB files."""

    name = "duckdb"

    def write(self, table: pa.Table, folder: Path, options: Mapping[str, str]) -> None:
        import duckdb

        with duckdb.connect(str(folder / FILE), config=SETTINGS) as db:
            db.register(ROWS, table)
            db.execute(f"create table data as from {ROWS}")
            db.unregister(ROWS)

    def read(self, folder: Path, options: Mapping[str, str]) -> pa.Table:
        import duckdb

        with duckdb.connect(str(folder / FILE), read_only=True, config=SETTINGS) as db:
            return db.sql("select * from data").to_arrow_table()
