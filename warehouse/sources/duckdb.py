"""A table of another DuckDB file, streamed as Arrow from a second, read-only connection.

The other file is not attached: an attached file cannot be released before the caller's
transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ppdm_core.model.errors import BadInput, Defect, MachineTrouble, PpdmError
from warehouse.columns import RESERVED, Source
from warehouse.sources._reader import Option, Reader
from warehouse.sources.checks import check_file, check_header, check_rows, describe_read_error
from warehouse.sources.row_text import BATCH_ROWS, digest_rows
from warehouse.sql import ROW, quote_name

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

STREAM = f"{RESERVED}stream"
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "arrow_lossless_conversion": True,
}
FIND = """
select schema_name, table_name
from duckdb_tables()
where not internal
  and ((schema_name = 'main' and table_name = $name) or schema_name || '.' || table_name = $name)
order by schema_name = 'main' desc
"""
TABLES = """
select if(schema_name = 'main', table_name, schema_name || '.' || table_name) as name
from duckdb_tables() where not internal order by name
"""
COLUMNS = """
select column_name
from duckdb_columns()
where schema_name = $schema and table_name = $name
order by column_index
"""
LOAD = "create table {table} as select row_number() over () - 1 as {row}, * from {stream}"


class Duckdb(Reader):
    """Tables of DuckDB files."""

    name = "duckdb"
    endings = (".duckdb", ".ddb")
    options: ClassVar[Mapping[str, Option]] = {
        "table": Option("Table of a DuckDB file.", is_required=True)
    }

    def is_format(self, start: bytes) -> bool:
        return start[8:12] == b"DUCK"

    def list_tables(self, source: Source) -> list[str]:
        return _read_file(
            source, lambda other: [row[0] for row in other.execute(TABLES).fetchall()]
        )

    def digest(self, source: Source) -> str:
        """Return a digest of names, types and rows in the order of their row ids."""
        return _read_file(source, lambda other: digest_rows(other, _find_table(other, source)[0]))

    def copy(self, source: Source, folder: Path) -> tuple[Source, str]:
        """Copy the one table into a DuckDB file of its own."""
        import duckdb

        schema, name = _read_file(source, lambda other: _find_names(other, source))
        table = f"{quote_name(schema)}.{quote_name(name)}"
        copy = self.find_copy(source, folder)
        try:
            with _open(":memory:") as own:
                own.execute("attach ? as source (read_only)", [source.path])
                own.execute("attach ? as copy", [copy.path])
                own.execute(f"create schema if not exists copy.{quote_name(schema)}")
                own.execute(f"create table copy.{table} as from source.{table}")
        except duckdb.Error as error:
            problem = describe_read_error(error, source, _unreadable_error(source))
        else:
            return copy, self.digest(copy)
        raise problem

    def find_copy(self, source: Source, folder: Path) -> Source:
        return replace(source, path=str(folder / source.name))

    def read_names(self, source: Source) -> list[str]:
        return _read_file(source, lambda other: _find_table(other, source)[1])

    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        _read_file(source, lambda other: _copy(db, other, source, table))
        check_rows(db, table, source)


def _copy(
    db: duckdb.DuckDBPyConnection, other: duckdb.DuckDBPyConnection, source: Source, table: str
) -> None:
    found = _find_table(other, source)[0]
    db.register(STREAM, other.sql(f"select * from {found}").to_arrow_reader(BATCH_ROWS))
    db.execute(LOAD.format(table=table, row=ROW, stream=STREAM)).fetchall()
    db.unregister(STREAM)


def _read_file(source: Source, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
    import duckdb

    check_file(source)
    is_open = False
    try:
        with _open(source.path, read_only=True) as other:
            is_open = True
            other.execute("set timezone = 'UTC'")  # or the digest would depend on the machine
            return work(other)
    except duckdb.Error as error:
        if is_open:
            problem = describe_read_error(error, source, _unreadable_error(source))
        else:
            problem = _describe_open_error(error, source)
    raise problem


@contextmanager
def _open(path: str, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a file in little memory; what DuckDB writes besides is in a private folder."""
    import duckdb

    from warehouse.scratch import MEMORY, open_scratch_folder

    with open_scratch_folder() as own:
        limits = {"memory_limit": MEMORY, "temp_directory": str(own)}
        with duckdb.connect(path, read_only=read_only, config={**SETTINGS, **limits}) as db:
            yield db


def _find_names(other: duckdb.DuckDBPyConnection, source: Source) -> tuple[str, str]:
    """Return the schema and the name of the table."""
    wanted = source.options["table"]
    found = other.execute(FIND, {"name": wanted}).fetchall()
    if not found:
        raise BadInput(
            f"The table '{wanted}' is not in {source.name}.",
            file=source.path,
            remedy="Check 'table' in [source]; views do not count.",
        )
    schema, name = found[0]
    return schema, name


def _find_table(other: duckdb.DuckDBPyConnection, source: Source) -> tuple[str, list[str]]:
    """Return the table, quoted, and the names of its columns after their checks."""
    schema, name = _find_names(other, source)
    found = other.execute(COLUMNS, {"schema": schema, "name": name}).fetchall()
    names = [column for (column,) in found]
    check_header(names, source)
    return f"{quote_name(schema)}.{quote_name(name)}", names


def _describe_open_error(error: duckdb.Error, source: Source) -> PpdmError:
    import duckdb

    if isinstance(error, duckdb.ConnectionException) or " lock " in str(error):
        return MachineTrouble(
            f"The source {source.name} is in use by another program.",
            file=source.path,
            remedy="Close it there, then try again.",
        )
    if isinstance(error, duckdb.IOException | duckdb.CatalogException):
        return _unreadable_error(source)
    return Defect(f"Opening {source.name} failed ({type(error).__name__}).", file=source.path)


def _unreadable_error(source: Source) -> BadInput:
    return BadInput(
        f"The source {source.name} is not a DuckDB file that this version can read.",
        file=source.path,
        remedy="Check 'kind' in [source], or export the table to Parquet.",
    )
