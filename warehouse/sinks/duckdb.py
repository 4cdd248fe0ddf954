"""A DuckDB file beside the Parquet file, with the one table `data`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.scratch import MEMORY, open_scratch_folder
from warehouse.sinks._sink import FileSink
from warehouse.sinks.parquet import BATCH_ROWS, DATA, read_schema, read_tables

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FILE, ROWS = "data.duckdb", "released"
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


class Duckdb(FileSink):
    """DuckDB files."""

    name = "duckdb"

    def write(self, folder: Path, options: Mapping[str, str]) -> None:
        import pyarrow as pa

        batches = (batch for table in read_tables(folder / DATA) for batch in table.to_batches())
        rows = pa.RecordBatchReader.from_batches(read_schema(folder / DATA), batches)
        with _open(folder / FILE) as db:
            db.register(ROWS, rows)
            db.execute(f"create table data as from {ROWS}").fetchall()
            db.unregister(ROWS)

    def read(self, folder: Path, options: Mapping[str, str]) -> Iterator[pa.Table]:
        import pyarrow as pa

        with _open(folder / FILE, read_only=True) as db:
            rows = db.sql("select * from data").to_arrow_reader(BATCH_ROWS)
            yield rows.schema.empty_table()
            for batch in rows:
                yield pa.Table.from_batches([batch])


@contextmanager
def _open(path: Path, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a file in little memory; what DuckDB writes besides is in a private folder."""
    import duckdb

    with open_scratch_folder() as own:
        limits = {"memory_limit": MEMORY, "temp_directory": str(own)}
        with duckdb.connect(str(path), read_only=read_only, config={**SETTINGS, **limits}) as db:
            yield db
