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
    file_digest,
    file_name,
    hide_values,
)
from warehouse.sql import ROW, literal

LOAD = """
create table {table} as
select row_number() over () - 1 as {row}, *
from read_parquet({path}, hive_partitioning = false)
"""

digest = file_digest


def load(db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
    check_file(source)
    check_header(_names(source), source)
    try:
        db.execute(LOAD.format(table=table, row=ROW, path=literal(glob.escape(source.path))))
        db.fetchall()
    except duckdb.Error as error:
        problem = hide_values(error, source, _not_parquet(source))
    else:
        return check_rows(db, table, source)
    raise problem


def _names(source: Source) -> list[str]:
    """As they stand in the file: DuckDB would rename duplicates silently."""
    import pyarrow
    import pyarrow.parquet

    try:
        return list(pyarrow.parquet.read_schema(source.path).names)
    except (pyarrow.ArrowException, OSError):
        raise _not_parquet(source) from None


def _not_parquet(source: Source) -> BadInput:
    return BadInput(
        f"The source {file_name(source)} is not a table that can be read as Parquet.",
        file=source.path,
        remedy="Check 'kind' in [source], and write the file again.",
    )
