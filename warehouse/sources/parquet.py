"""Parquet files, read with their own types."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING

from warehouse.columns import Source
from warehouse.sources._reader import Reader
from warehouse.sources.checks import check_header
from warehouse.sql import ROW, literal

if TYPE_CHECKING:
    import duckdb

LOAD = """
create table {table} as
select row_number() over () - 1 as {row}, *
from read_parquet({path}, hive_partitioning = false)
"""


class Parquet(Reader):
    """Parquet files."""

    name = "parquet"
    endings = (".parquet", ".pq")

    def is_format(self, start: bytes) -> bool:
        return start.startswith(b"PAR1")

    def create_table(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        self.find_names(db, source)
        db.execute(LOAD.format(table=table, row=ROW, path=literal(glob.escape(source.path))))
        db.fetchall()

    def find_names(self, db: duckdb.DuckDBPyConnection, source: Source) -> list[str]:
        """Return the names as they are in the file: DuckDB would rename duplicates silently."""
        import pyarrow
        import pyarrow.parquet

        try:
            names = list(pyarrow.parquet.read_schema(source.path).names)
        except (pyarrow.ArrowException, OSError):
            raise self.describe_bad_file(source) from None
        check_header(names, source)
        return names
