"""A DuckDB file beside the Parquet file, with the one table `data`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.sinks._sink import FileSink

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = "released"
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


class Duckdb(FileSink):
    """DuckDB files."""

    name = "duckdb"
    file_name = "data.duckdb"

    def write(self, table: pa.Table, path: Path) -> None:
        import duckdb

        with duckdb.connect(str(path), config=SETTINGS) as db:
            db.register(ROWS, table)
            db.execute(f"create table data as from {ROWS}")
            db.unregister(ROWS)

    def read(self, path: Path) -> pa.Table:
        import duckdb

        with duckdb.connect(str(path), read_only=True, config=SETTINGS) as db:
            return db.sql("select * from data").to_arrow_table()
