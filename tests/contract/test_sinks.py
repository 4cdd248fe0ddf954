from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import obstore
import pyarrow as pa
import pytest
from pyarrow import csv

from tests.contract import checks_sinks
from tests.contract.checks_sinks import ServerCase
from tests.support.servers import PASSWORD, Buckets, Postgresql, find_free_port
from warehouse.buckets import open_bucket
from warehouse.sinks import SINKS, Delivery, FileSink, ServerSink
from warehouse.sinks.csv import Csv
from warehouse.sinks.postgresql import Postgresql as PostgresqlSink
from warehouse.sinks.s3 import S3 as S3Sink

TOKENS = (checks_sinks.TOKEN, checks_sinks.OTHER_TOKEN)  # that outsiders cannot guess
FILES = [key for key, sink in SINKS.items() if isinstance(sink, FileSink)]
SERVERS = [key for key, sink in SINKS.items() if isinstance(sink, ServerSink)]
FILE_CHECKS = [checks_sinks.check_file_same_rows, checks_sinks.check_changed_file_noticed]
ServerCheck = Callable[[ServerSink, ServerCase, Path], None]
SERVER_CHECKS: list[ServerCheck] = [
    checks_sinks.check_hidden_until_exposed,
    checks_sinks.check_removed,
    checks_sinks.check_removed_before_exposed,
    checks_sinks.check_discarded,
    checks_sinks.check_existing_target_refused,
    checks_sinks.check_other_delivery_kept,
    checks_sinks.check_wrong_options_refused,
    checks_sinks.check_place_without_server,
]


class DatabaseReader:
    """The reader role of a schema."""

    def __init__(self, server: Postgresql, database: str, schema: str) -> None:
        self.server, self.database, self.schema = server, database, schema

    def _run(self, statement: str) -> list[Any]:
        return self.server.run(statement, database=self.database, user="reader")

    def list_tables(self) -> list[str]:
        rows = self._run(
            "select n.nspname || '.' || c.relname from pg_class c "
            "join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'v') "
            "and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') "
            "and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')"
        )
        return [name for (name,) in rows if not name.endswith("ppdm_manifests")]

    def read_document(self) -> bytes | None:
        from adbc_driver_manager import Error

        try:
            rows = self._run(f"select document from {self.schema}.ppdm_manifests")
        except Error:
            return None
        return rows[0][0].encode() if rows else None

    def fill_target(self) -> None:
        self.server.run(f"create table {self.schema}.t_0001 (a int)", database=self.database)


def make_database(server: Postgresql) -> ServerCase:
    """Return a schema of a new database; its writer is no administrator."""
    database = f"d{uuid.uuid4().hex[:12]}"
    for role in ("writer", "reader"):
        if not server.run(f"select 1 from pg_roles where rolname = '{role}'"):
            server.run(f"create role {role} login password '{PASSWORD}'")
    server.run(f"create database {database}", f"grant create on database {database} to writer")
    server.run("create schema open authorization writer", database=database)
    options = {"url": server.url(database, "writer"), "schema": "open", "reader": "reader"}
    unreachable = f"postgresql://writer@127.0.0.1:{find_free_port()}/{database}"
    wrong = (
        {"url": unreachable},
        {"url": server.url(database, "none")},
        {"url": server.url("none", "writer")},
        {"schema": "none"},
        {"reader": "none"},
        {"url": server.url(database, "reader")},  # who may not write
    )
    return ServerCase(options, DatabaseReader(server, database, "open"), wrong)


class BucketReader:
    """A person without keys, in a bucket that any person can read and nobody can list.

    This one knows where manifests are, learns the names of files from them, and remembers them.
    """

    def __init__(self, server: Buckets, bucket: str) -> None:
        self.server, self.bucket = server, bucket
        self.known: set[str] = set()

    def _read(self, key: str) -> bytes | None:
        """Return an object that is read without keys."""
        address = f"{self.server.endpoint}/{self.bucket}/{quote(key)}"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError:
            return None

    def list_tables(self) -> list[str]:
        manifest = self._read("p/t/0001/manifest.json")
        places = [] if manifest is None else json.loads(manifest)["sinks"]
        self.known |= {f"{urlsplit(each['url']).path[1:]}data.parquet" for each in places}
        found = self.server.client().list_objects_v2(Bucket=self.bucket).get("Contents", [])
        names = {each["Key"] for each in found if each["Key"].endswith(".parquet")}
        guessed = {key for key in names if not any(token in key for token in TOKENS)}
        return [key for key in sorted(self.known | guessed) if self._read(key) is not None]

    def read_document(self) -> bytes | None:
        names = ("manifest.json", "withdrawn.json")
        found = [self._read(f"p/t/0001/{name}") for name in names]
        assert found.count(None) > 0  # never both
        return found[0] or found[1]

    def fill_target(self) -> None:
        key = "p/t/0001/manifest.json"
        self.server.client().put_object(Bucket=self.bucket, Key=key, Body=b"other")


def make_bucket(server: Buckets, monkeypatch: pytest.MonkeyPatch) -> ServerCase:
    bucket = f"b{uuid.uuid4().hex[:12]}"
    server.client().create_bucket(Bucket=bucket)
    server.let_all_read(bucket)
    server.set_environment(monkeypatch)
    wrong = (
        {"url": "s3://no-such-bucket/p"},
        {"endpoint": f"http://127.0.0.1:{find_free_port()}"},
    )
    return ServerCase({"url": f"s3://{bucket}/p"}, BucketReader(server, bucket), wrong)


@pytest.fixture
def case(key: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ServerCase:
    """A new place on the server of a sink."""
    if key == "postgresql":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        return make_database(request.getfixturevalue("postgresql"))
    return make_bucket(request.getfixturevalue("buckets"), monkeypatch)


@pytest.mark.parametrize("check", FILE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("key", FILES)
def test_file_sink_check_passes(key: str, check: Callable[..., None], tmp_path: Path) -> None:
    check(SINKS[key], tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize("check", SERVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("key", SERVERS)
def test_server_sink_check_passes(
    key: str, check: ServerCheck, case: ServerCase, tmp_path: Path
) -> None:
    sink = SINKS[key]
    assert isinstance(sink, ServerSink)
    check(sink, case, tmp_path)


class RoundsNumbers(Csv):
    def write(self, folder: Path, options: Mapping[str, str]) -> None:
        table = checks_sinks.make_table()
        rounded = table["x 1"].cast(pa.float32(), safe=False).cast(pa.float64())
        csv.write_csv(table.set_column(0, "x 1", rounded), folder / "data.csv")


class IgnoresTheFile(Csv):
    def read(self, folder: Path, options: Mapping[str, str]) -> Iterator[pa.Table]:
        yield checks_sinks.make_table()


class StagesInTheOpen(PostgresqlSink):
    def stage(self, delivery: Delivery, folder: Path) -> None:
        super().stage(delivery, folder)
        super().expose(delivery, b"")


class RemovesNothing(PostgresqlSink):
    def remove(self, delivery: Delivery, notice: bytes) -> None:
        pass

    def discard(self, delivery: Delivery) -> None:
        pass


class ReplacesTarget(PostgresqlSink):
    def check_target(self, delivery: Delivery) -> None:
        pass


class KnowsReleasesOnly(PostgresqlSink):
    """As if no other home had a release of the same name."""

    def remove(self, delivery: Delivery, notice: bytes) -> None:
        super().remove(replace(delivery, token=checks_sinks.TOKEN), notice)


class TellsTheServer(PostgresqlSink):
    def describe_place(self, delivery: Delivery) -> dict[str, Any]:
        return {"kind": "postgresql", **delivery.options}


class WritesManifestFirst(S3Sink):
    def stage(self, delivery: Delivery, folder: Path) -> None:
        manifest = checks_sinks.make_manifest(self, delivery)
        super().expose(delivery, manifest)
        super().stage(delivery, folder)


class HasNamesToGuess(S3Sink):
    def stage(self, delivery: Delivery, folder: Path) -> None:
        super().stage(replace(delivery, token="data"), folder)
        super().stage(delivery, folder)


class LeavesObjects(S3Sink):
    """Only the manifest is replaced, and nothing is discarded."""

    def remove(self, delivery: Delivery, notice: bytes) -> None:
        bucket = open_bucket(delivery.options["url"], delivery.options)
        obstore.put(bucket, "p/t/0001/withdrawn.json", notice)
        obstore.delete(bucket, "p/t/0001/manifest.json")

    def discard(self, delivery: Delivery) -> None:
        pass


class LeavesManifest(S3Sink):
    def remove(self, delivery: Delivery, notice: bytes) -> None:
        super().discard(delivery)


class ReplacesObjects(S3Sink):
    def check_target(self, delivery: Delivery) -> None:
        pass

    def expose(self, delivery: Delivery, manifest: bytes) -> None:
        bucket = open_bucket(delivery.options["url"], delivery.options)
        obstore.put(bucket, "p/t/0001/manifest.json", manifest)


class RemovesOthers(S3Sink):
    def remove(self, delivery: Delivery, notice: bytes) -> None:
        super().discard(delivery)
        super().remove(replace(delivery, token=checks_sinks.TOKEN), notice)


class TellsTheEndpoint(S3Sink):
    def describe_place(self, delivery: Delivery) -> dict[str, Any]:
        return {"kind": "s3", "server": "127.0.0.1"}


BUGS: list[tuple[ServerCheck, ServerSink]] = [
    (checks_sinks.check_hidden_until_exposed, StagesInTheOpen()),
    (checks_sinks.check_removed, RemovesNothing()),
    (checks_sinks.check_removed_before_exposed, RemovesNothing()),
    (checks_sinks.check_discarded, RemovesNothing()),
    (checks_sinks.check_existing_target_refused, ReplacesTarget()),
    (checks_sinks.check_other_delivery_kept, KnowsReleasesOnly()),
    (checks_sinks.check_wrong_options_refused, ReplacesTarget()),
    (checks_sinks.check_place_without_server, TellsTheServer()),
    (checks_sinks.check_hidden_until_exposed, WritesManifestFirst()),
    (checks_sinks.check_hidden_until_exposed, HasNamesToGuess()),
    (checks_sinks.check_removed, LeavesObjects()),
    (checks_sinks.check_removed, LeavesManifest()),
    (checks_sinks.check_removed_before_exposed, LeavesObjects()),
    (checks_sinks.check_discarded, LeavesObjects()),
    (checks_sinks.check_existing_target_refused, ReplacesObjects()),
    (checks_sinks.check_other_delivery_kept, ReplacesObjects()),
    (checks_sinks.check_other_delivery_kept, RemovesOthers()),
    (checks_sinks.check_wrong_options_refused, ReplacesObjects()),
    (checks_sinks.check_place_without_server, TellsTheEndpoint()),
]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("key", "check", "bug"),
    [(bug.name, check, bug) for check, bug in BUGS],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
def test_server_sink_check_planted_bug_found(
    key: str, check: ServerCheck, bug: ServerSink, case: ServerCase, tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(bug, case, tmp_path)


def test_file_sink_check_planted_bug_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(AssertionError):
        checks_sinks.check_file_same_rows(RoundsNumbers(), tmp_path / "a")
    with pytest.raises(AssertionError):
        checks_sinks.check_changed_file_noticed(IgnoresTheFile(), tmp_path)


def test_sink_checks_each_has_a_bug() -> None:
    for key in SERVERS:
        checks = [check for check, bug in BUGS if bug.name == key]
        assert list(dict.fromkeys(checks)) == SERVER_CHECKS


@pytest.mark.parametrize("key", SINKS)
def test_sink_name_same_in_three_places(key: str) -> None:
    kind = type(SINKS[key])
    assert (SINKS[key].name, kind.__module__.rpartition(".")[2]) == (key, key)
    assert kind.__name__.lower() == key
