"""A schema of a PostgreSQL database: a table for each version, and their manifests.

The rows are written to a staging schema that no reader can use. One transaction then moves the
table, grants it to the reader role and adds its manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ppdm_core.model.errors import BadInput
from warehouse.checkpoints import checkpoint
from warehouse.postgresql import check_server_options, connect, fetch, translate_errors
from warehouse.sinks._sink import Delivery, ServerSink
from warehouse.sources import Option
from warehouse.sql import literal, quote_name

if TYPE_CHECKING:
    import pyarrow as pa
    from adbc_driver_manager.dbapi import Cursor

STAGING = "ppdm_staging"
MANIFESTS = "ppdm_manifests"  # name of the table with the manifests of a schema
READABLE = "release_id, table_name, document"  # its columns that the reader may see
BATCH_ROWS = 65_536
STATE = """
select
  exists (select 1 from pg_namespace where nspname = {schema}),
  exists (select 1 from pg_roles where rolname = {reader}),
  coalesce(has_schema_privilege(to_regnamespace({quoted}), 'create, usage'), false),
  has_database_privilege(current_database(), 'create')
    or coalesce(has_schema_privilege(to_regnamespace({staging}), 'create, usage'), false)
"""
# An administrator counts as a member of every role.
SEES_STAGED = """
select
  coalesce(has_schema_privilege(r.oid, to_regnamespace({staging}), 'usage'), false)
  or exists (
    select 1 from pg_roles o
    where pg_has_role(r.oid, o.oid, 'member') and (
      o.rolname in (current_user, 'pg_read_all_data')
      or o.oid in (select nspowner from pg_namespace where nspname = {staging})
    )
  )
from pg_roles r where r.rolname = {reader}
"""


class Postgresql(ServerSink):
    """Schemas of PostgreSQL databases."""

    name = "postgresql"
    options: ClassVar[Mapping[str, Option]] = {
        "url": Option("postgresql://user@host:port/database, without a password.", True),
        "schema": Option("Schema of the released tables; it must exist.", True, max_characters=63),
        "reader": Option("Role that may read the released tables.", True, max_characters=63),
        "credentials": Option(
            "File with the password, which only its owner can read; PGPASSWORD if not given.",
            is_path=True,
        ),
    }

    def check_options(self, options: Mapping[str, str]) -> None:
        check_server_options(options)

    def check_target(self, delivery: Delivery) -> None:
        options = delivery.options
        with connect(options) as cursor, translate_errors(options, "Checking the sink"):
            names = {
                "schema": literal(options["schema"]),
                "quoted": literal(quote_name(options["schema"])),
                "staging": literal(STAGING),
                "reader": literal(options["reader"]),
            }
            has_schema, has_reader, may_create, may_stage = fetch(cursor, STATE.format(**names))[0]
            sees_staged = (True,) in fetch(cursor, SEES_STAGED.format(**names))
            is_free = _find_place(cursor, delivery) is not Place.OTHER
        if not has_schema:
            raise BadInput(
                f"The schema '{options['schema']}' of the postgresql sink does not exist.",
                remedy="Ask the administrator of the database to create it for this user.",
            )
        if not has_reader:
            raise BadInput(
                f"The role '{options['reader']}' of the postgresql sink does not exist.",
                remedy="Ask the administrator of the database to create it.",
            )
        if not may_create or not may_stage:
            where = "the schema" if not may_create else f"the database or its schema {STAGING}"
            raise BadInput(
                f"The user of the postgresql sink may not create tables in {where}.",
                remedy="Ask the administrator of the database for the right to create there.",
            )
        if sees_staged:
            raise BadInput(
                f"The role '{options['reader']}' of the postgresql sink could read rows that are "
                "not published yet: it is the user of the sink, an administrator, or a member.",
                remedy="Name a role in 'reader' that has no other rights.",
            )
        if not is_free:
            raise _exists_error(delivery)

    def describe_place(self, delivery: Delivery) -> dict[str, Any]:
        schema = delivery.options["schema"]
        return {"kind": self.name, "schema": schema, "table": delivery.name}

    def stage(self, delivery: Delivery, folder: Path) -> None:
        import pyarrow.parquet as pq

        options, table = delivery.options, _name_staged(delivery)
        with (
            connect(options) as cursor,
            translate_errors(options, "Writing the rows"),
            pq.ParquetFile(folder / "data.parquet", pre_buffer=False) as file,
        ):
            cursor.execute(f"create schema if not exists {STAGING}")
            cursor.execute(f"revoke all on schema {STAGING} from public")
            cursor.execute(f"drop table if exists {table}")
            rows = _stream(file)
            cursor.adbc_ingest(delivery.token, rows, mode="create", db_schema_name=STAGING)

    def read_staged(self, delivery: Delivery, folder: Path) -> Iterator[pa.Table]:
        return read_rows(delivery.options, _name_staged(delivery))

    def discard(self, delivery: Delivery) -> None:
        options = delivery.options
        with connect(options) as cursor, translate_errors(options, "Discarding the rows"):
            cursor.execute(f"drop table if exists {_name_staged(delivery)}")

    def expose(self, delivery: Delivery, manifest: bytes) -> None:
        options, name = delivery.options, quote_name(delivery.name)
        schema, reader = quote_name(options["schema"]), quote_name(options["reader"])
        with connect(options) as cursor, translate_errors(options, "Publishing the rows"):
            manifests = _make_manifests(cursor, schema)
            cursor.execute("begin")
            place = _find_place(cursor, delivery)
            if place is Place.OTHER:
                raise _exists_error(delivery)
            if place is Place.OURS:
                return
            cursor.execute(f"alter table {_name_staged(delivery)} set schema {schema}")
            cursor.execute(f"alter table {schema}.{quote_name(delivery.token)} rename to {name}")
            cursor.execute(f"insert into {manifests} values ({_list_values(delivery, manifest)})")
            cursor.execute(f"grant usage on schema {schema} to {reader}")
            cursor.execute(f"grant select on {schema}.{name} to {reader}")
            cursor.execute(f"grant select ({READABLE}) on {manifests} to {reader}")
            checkpoint("rows moved")
            cursor.execute("commit")

    def remove(self, delivery: Delivery, notice: bytes) -> None:
        options, schema = delivery.options, quote_name(delivery.options["schema"])
        with connect(options) as cursor, translate_errors(options, "Withdrawing the rows"):
            manifests = _make_manifests(cursor, schema)
            cursor.execute("begin")
            cursor.execute(f"drop table if exists {_name_staged(delivery)}")
            place = _find_place(cursor, delivery)
            if place is Place.OURS:
                cursor.execute(f"drop table if exists {schema}.{quote_name(delivery.name)}")
            if place is not Place.OTHER:
                cursor.execute(
                    f"insert into {manifests} values ({_list_values(delivery, notice)}) "
                    "on conflict (release_id) do update set document = excluded.document"
                )
            checkpoint("rows removed")
            cursor.execute("commit")


class Place(Enum):
    """What is where a delivery belongs."""

    FREE = "nothing"
    OURS = "this delivery, or the notice of it"
    OTHER = "something else, perhaps of another home"


def _name_staged(delivery: Delivery) -> str:
    return f"{STAGING}.{quote_name(delivery.token)}"


def _name_target(delivery: Delivery) -> str:
    return f"{quote_name(delivery.options['schema'])}.{quote_name(delivery.name)}"


def _exists_error(delivery: Delivery) -> BadInput:
    return BadInput(
        f"The table {delivery.name} exists already in '{delivery.options['schema']}'.",
        remedy="Rename or drop it, or name another schema.",
    )


def _make_manifests(cursor: Cursor, schema: str) -> str:
    """Return the table of manifests; create it if there is none."""
    table = f"{schema}.{MANIFESTS}"
    cursor.execute(
        f"create table if not exists {table} (release_id text primary key, "
        "table_name text not null unique, document text not null, token text not null)"
    )
    return table


def _list_values(delivery: Delivery, document: bytes) -> str:
    """Return the row of a delivery in the table of manifests."""
    texts = (delivery.release_id, delivery.name, document.decode(), delivery.token)
    return ", ".join(map(literal, texts))


def _find_place(cursor: Cursor, delivery: Delivery) -> Place:
    """Return what is where a delivery belongs. Homes may have datasets of the same name."""
    manifests = f"{quote_name(delivery.options['schema'])}.{MANIFESTS}"
    query = "select to_regclass({}) is not null, to_regclass({}) is not null"
    names = map(literal, (manifests, _name_target(delivery)))
    has_manifests, has_table = fetch(cursor, query.format(*names))[0]
    tokens = []
    if has_manifests:
        name, release_id = literal(delivery.name), literal(delivery.release_id)
        where = f"table_name = {name} or release_id = {release_id}"
        tokens = fetch(cursor, f"select token from {manifests} where {where}")
    if tokens == [(delivery.token,)]:
        return Place.OURS
    return Place.OTHER if tokens or has_table else Place.FREE


def _stream(file: Any) -> pa.RecordBatchReader:
    import pyarrow as pa

    batches = file.iter_batches(batch_size=BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(file.schema_arrow, batches)


def read_rows(options: Mapping[str, str], table: str) -> Iterator[pa.Table]:
    """Yield the rows of a table in blocks, in any order; ``table`` is quoted."""
    import pyarrow as pa

    with connect(options) as cursor, translate_errors(options, "Reading the rows"):
        cursor.execute(f"select * from {table}")
        rows = cursor.fetch_record_batch()
        yield rows.schema.empty_table()
        for batch in rows:
            yield pa.Table.from_batches([batch])
