"""A table, view or query of a PostgreSQL database, streamed as Arrow.

All rows come from one read-only transaction, so that a table that changes meanwhile cannot mix two
contents. Rows are in the order of the primary key if the table has one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ppdm_core.model.errors import BadInput, PpdmError
from warehouse.columns import RESERVED, Source
from warehouse.home import create_private, translate_disk_errors
from warehouse.postgresql import (
    SCHEMES,
    check_server_options,
    connect,
    describe_server,
    fetch,
    translate_errors,
)
from warehouse.sources._reader import Option, Reader
from warehouse.sources.checks import check_header, check_rows, describe_read_error
from warehouse.sources.files import PARTS
from warehouse.sources.row_text import digest_rows
from warehouse.sql import ROW, literal, quote_name

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from adbc_driver_manager.dbapi import Cursor

STREAM = f"{RESERVED}stream"
PART_ROWS = 1_048_576
BEGIN = "begin isolation level repeatable read read only"
FIND = """
select n.nspname, c.relname
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'v', 'm', 'p', 'f')
  and (
    n.nspname || '.' || c.relname = {name}
    or (c.relname = {name} and pg_table_is_visible(c.oid))
  )
order by pg_table_is_visible(c.oid) desc
"""
TABLES = """
select case when pg_table_is_visible(c.oid) then '' else n.nspname || '.' end || c.relname as name
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'v', 'm', 'p', 'f')
  and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
  and has_table_privilege(c.oid, 'select')
order by name
"""
KEY = """
select a.attname
from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = {table}::regclass and i.indisprimary
order by array_position(i.indkey::int2[], a.attnum)
"""
LOAD = "create table {table} as select row_number() over () - 1 as {row}, * from {stream}"
AS_TEXT = ("numeric", "uuid")  # exactly as the server shows them


class Postgresql(Reader):
    """Tables, views and queries of PostgreSQL databases."""

    name = "postgresql"
    schemes = SCHEMES
    options: ClassVar[Mapping[str, Option]] = {
        "url": Option("postgresql://user@host:port/database, without a password."),
        "table": Option("Table or view, with its schema: clinic.visits."),
        "query": Option(
            "File with one select statement, in place of 'table'.", is_path=True, is_content=True
        ),
        "credentials": Option(
            "File with the password, which only its owner can read; PGPASSWORD if not given.",
            is_path=True,
        ),
    }

    def check_options(self, path: str, options: Mapping[str, str]) -> None:
        if "url" not in options:
            raise BadInput("A postgresql source needs a url.", remedy="Add 'url' to [source].")
        check_server_options(options)
        if ("table" in options) == ("query" in options):
            raise BadInput(
                "A postgresql source needs either a table or a query.",
                remedy="Set one of 'table' and 'query' in [source].",
            )

    def list_tables(self, source: Source) -> list[str]:
        with connect(source.options) as cursor, translate_errors(source.options, "Reading"):
            return [name for (name,) in fetch(cursor, TABLES)]

    def digest(self, source: Source) -> str:
        """Return a digest of names, types and rows in their order, and of the query."""
        with open_rows(source) as rows, _scan(source, rows) as db:
            return digest_rows(db, STREAM, read_query(source))

    def copy(self, source: Source, folder: Path) -> tuple[Source, str]:
        """Copy the rows to Parquet files in one pass."""
        copy = self.find_copy(source, folder)
        with open_rows(source) as rows:
            _write_parts(rows, Path(copy.path))
        parts = f"select * from read_parquet({literal(f'{copy.path}/*.parquet')})"
        with _scan(source, None) as db:
            return copy, digest_rows(db, f"({parts})", read_query(source))

    def find_copy(self, source: Source, folder: Path) -> Source:
        return Source("parquet", str(folder / PARTS))

    def read_names(self, source: Source) -> list[str]:
        with open_rows(source) as rows:
            return list(rows.schema.names)

    def load(self, db: duckdb.DuckDBPyConnection, source: Source, table: str) -> None:
        with open_rows(source) as rows, rows.guard(source):
            db.register(STREAM, rows.open_reader())
            db.execute(LOAD.format(table=table, row=ROW, stream=STREAM)).fetchall()
            db.unregister(STREAM)
        check_rows(db, table, source)


class ServerRows:
    """The rows of a query while its transaction is open."""

    def __init__(self, batches: Any, options: Mapping[str, str]) -> None:
        self._batches, self._options = batches, options
        self._problem: PpdmError | None = None
        self.schema: pa.Schema = _without_metadata(batches.schema)

    def open_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream that DuckDB can read."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self.read_batches())

    def read_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows; errors are those of ppdm."""
        import pyarrow as pa

        try:
            with translate_errors(self._options, "Reading"):
                for batch in self._batches:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        except PpdmError as problem:
            self._problem = problem
            raise

    @contextmanager
    def guard(self, source: Source) -> Iterator[None]:
        """Raise what the server said in place of the error of the library that read from it."""
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            unreadable = BadInput(f"The rows of {source.name} cannot be read.", remedy="Try psql.")
            raise (self._problem or describe_read_error(error, source, unreadable)) from None


@contextmanager
def open_rows(source: Source) -> Iterator[ServerRows]:
    """Open the rows of a source in one read-only transaction."""
    options = source.options
    with connect(options) as cursor:
        with translate_errors(options, f"Reading {source.name}"):
            for setting in ("synchronize_seqscans = off", "timezone = 'UTC'"):
                cursor.execute(f"set {setting}")
            cursor.execute(BEGIN)
            query, order = _build_query(cursor, source)
            cursor.execute(f"select * from ({query}) q limit 0")
            schema = cursor.fetch_record_batch().schema
            check_header(schema.names, source)
            cells = ", ".join(_select_column(field, source) for field in schema)
            cursor.execute(f"select {cells} from ({query}) q{order}")
            rows = ServerRows(cursor.fetch_record_batch(), options)
        yield rows


def read_query(source: Source) -> str:
    """Return the text of the query file; "" for a table."""
    path = source.options.get("query")
    if path is None:
        return ""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"The query file {os.path.basename(path)} cannot be read ({type(error).__name__}).",
            file=path,
            remedy="Check 'query' in [source].",
        ) from None
    return text.strip().rstrip(";")


def _build_query(cursor: Cursor, source: Source) -> tuple[str, str]:
    """Return the query of a source, and the order of its rows."""
    text = read_query(source)
    if text:
        return f"{text}\n", ""
    wanted = source.options["table"]
    found = fetch(cursor, FIND.format(name=literal(wanted)))
    if not found:
        raise BadInput(
            f"The table '{wanted}' is not in {describe_server(source.options['url'])}.",
            remedy="Check 'table' in [source]: with its schema, as in clinic.visits.",
        )
    table = ".".join(map(quote_name, found[0]))
    key = [quote_name(name) for (name,) in fetch(cursor, KEY.format(table=literal(table)))]
    return f"select * from {table}", f" order by {', '.join(key)}" if key else ""


def _select_column(field: pa.Field, source: Source) -> str:
    """Return SQL for a column; raise BadInput for a type that is not a value of a table."""
    import pyarrow as pa

    name, kind = quote_name(field.name), field.type
    own_type = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if own_type in AS_TEXT:
        return f"{name}::text as {name}"
    is_known: tuple[Callable[[Any], bool], ...] = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_time,
    )
    if any(check(kind) for check in is_known):
        return name
    raise BadInput(
        f"The column has the type {own_type or kind}, which no column of a table can have here.",
        file=source.name,
        column=field.name,
        remedy="Cast it to text or a number in a view or query, or leave it out there.",
    )


def _without_metadata(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _write_parts(rows: ServerRows, folder: Path) -> None:
    """Write the rows to Parquet files of at most ``PART_ROWS`` rows and one batch."""
    import pyarrow.parquet as pq

    batches, number = rows.read_batches(), 0
    batch = next(batches, None)
    with translate_disk_errors(folder):
        folder.mkdir(mode=0o700, parents=True)
        while number == 0 or batch is not None:
            with (
                create_private(folder / f"part-{number:04d}.parquet") as file,
                pq.ParquetWriter(file, rows.schema, compression="zstd") as writer,
            ):
                count = 0
                while batch is not None and count < PART_ROWS:
                    writer.write_batch(batch)
                    count += batch.num_rows
                    batch = next(batches, None)
            number += 1


@contextmanager
def _scan(source: Source, rows: ServerRows | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory in which ``STREAM`` are the rows."""
    from warehouse.scratch import open_scratch_database

    with open_scratch_database() as db:
        db.execute("set timezone = 'UTC'")
        if rows is None:
            yield db
            return
        db.register(STREAM, rows.open_reader())
        with rows.guard(source):
            yield db
