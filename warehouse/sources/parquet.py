"""Parquet files, read with their own types."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING

from warehouse.columns import Source
from warehouse.sources._reader import FileReader
from warehouse.sources.checks import check_header
from warehouse.sql import literal

if TYPE_CHECKING:
    import duckdb

SELECT = "select * from read_parquet({path}, hive_partitioning = false)"


class Parquet(FileReader):
    """Parquet files."""

    name = "parquet"
    endings = (".parquet", ".pq")

    def is_format(self, start: bytes) -> bool:
        return start.startswith(b"PAR1")

    def select_rows(self, db: duckdb.DuckDBPyConnection, source: Source) -> str:
        self.find_names(db, source)
        return SELECT.format(path=literal(glob.escape(source.path)))

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
