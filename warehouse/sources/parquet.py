"""Parquet files, read with their own types."""

from __future__ import annotations

import glob

import duckdb

from ppdm_core.model.errors import BadInput
from warehouse.columns import Source
from warehouse.sources.checks import (
    check_file,
    check_header,
    check_rows,
    describe_read_error,
    file_digest,
    file_name,
)
from warehouse.sql import ROW, literal

LOAD = """
create table {table} as
select row_number() over () - 1 as {row}, *
from read_parquet({path}, hive_partitioning = false)
"""

digest = file_digest


def load(db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
    """Create a table from a Parquet file, with the types of the file."""
    check_file(source)
    check_header(_read_names(source), source)
    try:
        db.execute(LOAD.format(table=table, row=ROW, path=literal(glob.escape(source.path))))
        db.fetchall()
    except duckdb.Error as error:
        problem = describe_read_error(error, source, _format_error(source))
    else:
        return check_rows(db, table, source)
    raise problem


def _read_names(source: Source) -> list[str]:
    """Return the names as they are in the file: DuckDB would rename duplicates silently."""
    import pyarrow
    import pyarrow.parquet

    try:
        return list(pyarrow.parquet.read_schema(source.path).names)
    except (pyarrow.ArrowException, OSError):
        raise _format_error(source) from None


def _format_error(source: Source) -> BadInput:
    return BadInput(
        f"The source {file_name(source)} is not a table that can be read as Parquet.",
        file=source.path,
        remedy="Check 'kind' in [source], and write the file again.",
    )
