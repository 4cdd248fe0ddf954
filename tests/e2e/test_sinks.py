"""Releases from a database to databases, buckets and further files, as people make them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.e2e.test_ledger import charges
from tests.support.kills import IN_DELIVERY, IN_REMOVAL, check_published, kill
from tests.support.servers import (
    PASSWORD,
    UNPRIVILEGED_ID,
    Buckets,
    Postgresql,
    find_free_port,
)
from tests.support.small_disk import fill_disk, mount_disk
from tests.support.small_release import Small, small_rows
from warehouse.database import Store
from warehouse.home import Home

pytestmark = pytest.mark.slow
Maker = Callable[..., Small]
DISK = 24 * 2**20  # bytes; an empty database takes eight million


@dataclass(frozen=True)
class Place:
    """A release from a database to the same database and to a bucket."""

    release: Small
    server: Postgresql
    buckets: Buckets
    database: str
    bucket: str

    def run_as(self, user: str, *statements: str) -> list[Any]:
        return self.server.run(*statements, database=self.database, user=user)

    def list_readable(self) -> list[str]:
        """Return every table that the reader role can select from, as the server says."""
        rows = self.run_as(
            "reader",
            "select table_schema || '.' || table_name from information_schema.tables "
            "where table_schema not in ('pg_catalog', 'information_schema') order by 1",
        )
        return [name for (name,) in rows]

    def list_objects(self) -> list[str]:
        found = self.buckets.client().list_objects_v2(Bucket=self.bucket)
        return [each["Key"] for each in found.get("Contents", [])]

    def list_manifests(self) -> list[str]:
        return [each for each in self.list_objects() if each.endswith("manifest.json")]

    def list_staged(self) -> list[Any]:
        query = "select tablename from pg_tables where schemaname = 'ppdm_staging'"
        return self.run_as("writer", query)

    def url(self, user: str) -> str:
        return self.server.url(self.database, user)


@pytest.fixture
def place(small: Maker, postgresql: Postgresql, buckets: Buckets) -> Place:
    """A private table in a database whose writer, reader and administrator are three roles."""
    database, bucket = f"e{uuid.uuid4().hex[:12]}", f"e{uuid.uuid4().hex[:12]}"
    for role in ("writer", "reader"):
        if not postgresql.run(f"select 1 from pg_roles where rolname = '{role}'"):
            postgresql.run(f"create role {role} login password '{PASSWORD}'")
    postgresql.run(f"create database {database}", f"grant create on database {database} to writer")
    postgresql.run(
        "create schema clinic authorization writer",
        "create schema open authorization writer",
        database=database,
    )
    rows = small_rows()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    numbers = {n: list(map(float, columns[n])) for n in ("height", "weight", "pulse", "iron")}
    postgresql.ingest(
        pa.table({**columns, **numbers}), "visits", "clinic", database=database, user="writer"
    )
    buckets.client().create_bucket(Bucket=bucket)
    release = small()
    release.content["source"] = {
        "kind": "postgresql",
        "url": postgresql.url(database, "writer"),
        "table": "clinic.visits",
    }
    release.content["sinks"] = [
        {"kind": "csv"},
        {"kind": "duckdb"},
        {
            "kind": "postgresql",
            "url": postgresql.url(database, "writer"),
            "schema": "open",
            "reader": "reader",
        },
        {"kind": "s3", "url": f"s3://{bucket}/to", "endpoint": buckets.endpoint},
        {"kind": "parquet", "partition": "mood"},
    ]
    keys = {f"AWS_{name.upper()}": text for name, text in buckets.writer.items()}
    release.env |= {"PGPASSWORD": PASSWORD, "AWS_ENDPOINT_URL": buckets.endpoint, **keys}
    return Place(release.write(), postgresql, buckets, database, bucket)


RELEASED = ["open.ppdm_manifests", "open.small_0001"]


def test_release_database_to_all_sinks_then_withdraw(place: Place) -> None:
    release = place.release
    assert release.run("check").exit_code == 0
    assert release.run().exit_code == 0
    assert place.list_readable() == RELEASED
    names = sorted(path.name for path in (release.published / "0001").iterdir())
    assert {"data.csv", "data.duckdb", "data.parquet", "manifest.json"} <= set(names)
    manifest = json.loads((release.published / "0001" / "manifest.json").read_text())
    assert {each["kind"] for each in manifest["sinks"]} == {"postgresql", "s3"}
    table = ("--table", "open.small_0001")
    found = release.ask("verify", place.url("reader"), *table)
    assert found.exit_code == 0 and "every row is as its manifest says" in found.stdout
    assert release.ask("verify", f"s3://{place.bucket}/to/small/0001").exit_code == 0
    check_no_password(place)

    column = manifest["public"]["columns"][0]
    place.run_as("writer", f"update open.small_0001 set \"{column}\" = 1 where ctid = '(0,1)'")
    assert release.ask("verify", place.url("reader"), *table).exit_code == 3

    withdrawn = release.ask("withdraw", "small-0001", "--reason", "a mistake")
    assert withdrawn.exit_code == 0
    assert place.list_readable() == ["open.ppdm_manifests"]
    assert place.list_objects() == ["to/small/0001/withdrawn.json"]
    for where in ((place.url("reader"), *table), (f"s3://{place.bucket}/to/small/0001",)):
        found = release.ask("verify", *where)
        assert found.exit_code == 3 and "a mistake" in found.stdout


def check_no_password(place: Place) -> None:
    """Search every file of the home and the release file for passwords and keys."""
    secrets = [PASSWORD.encode(), place.buckets.writer["secret_access_key"].encode()]
    for path in walk(place.release.folder):
        content = path.read_bytes()
        assert not any(secret in content for secret in secrets), path.name
    for name in place.list_objects():
        body = place.buckets.client().get_object(Bucket=place.bucket, Key=name)["Body"].read()
        assert not any(secret in body for secret in secrets), name


def walk(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root, name) for name in names if Path(root, name).is_file())


FILES = {"csv": "data.csv", "duckdb": "data.duckdb", "parquet": "data.mood=calm.parquet"}
# Sink, point, and whether the version is recorded as published by then.
KILLS = (
    ("csv", "further file written", False),
    ("duckdb", "further file written #2", False),
    ("parquet", "further file written #3", False),
    ("postgresql", "rows staged", False),
    ("s3", "object staged", False),
    ("s3", "object staged #3", False),
    ("s3", "rows staged #2", False),
    ("postgresql", "rows moved", True),
    ("postgresql", "delivery changed", True),
    ("s3", "delivery changed #2", True),
)
REMOVALS = (
    ("postgresql", "rows removed"),
    ("postgresql", "delivery changed"),
    ("s3", "notice of a sink written"),
    ("s3", "manifest of a sink removed"),
    ("s3", "delivery changed #2"),
)


def test_kills_every_point_in_sinks_tried() -> None:
    tried = {point.partition(" #")[0] for _, point, _ in KILLS}
    assert tried == {*IN_DELIVERY}
    removals = {point.partition(" #")[0] for _, point in REMOVALS}
    assert removals == {*IN_REMOVAL, "delivery changed"}


@pytest.mark.parametrize(("sink", "point", "is_recorded"), KILLS)
def test_release_killed_in_a_sink_next_run_completes(
    sink: str, point: str, is_recorded: bool, place: Place
) -> None:
    release = place.release
    assert kill(release, point).exit_code == -9
    if not is_recorded:
        assert place.list_readable() == [] and place.list_manifests() == []
        assert release.versions() == []
        drafts = [path for path in release.published.iterdir() if sink in FILES]
        assert all((draft / FILES[sink]).exists() for draft in drafts)
        assert not any((draft / "manifest.json").exists() for draft in drafts)
    if point == "rows moved":  # in a transaction that was not committed
        assert RELEASED[1] not in place.list_readable() and place.list_manifests() == []
    assert release.run().exit_code == 0
    assert place.list_readable() == RELEASED
    assert place.list_manifests() == ["to/small/0001/manifest.json"]
    table = ("--table", "open.small_0001")
    for where in ((place.url("reader"), *table), (f"s3://{place.bucket}/to/small/0001",)):
        assert release.ask("verify", *where).exit_code == 0
    check_published(release)
    assert {*FILES.values()} <= {path.name for path in (release.published / "0001").iterdir()}
    names = {path.name for path in (release.published / "0001").iterdir()} - {"manifest.json"}
    assert {each.rpartition("/")[2] for each in place.list_objects()} == {*names, "manifest.json"}
    assert place.list_staged() == []
    assert count_events(release, "delivered") == 2


@pytest.mark.parametrize(("sink", "point"), REMOVALS)
def test_withdraw_killed_in_a_sink_same_command_completes(
    sink: str, point: str, place: Place
) -> None:
    release = place.release
    assert release.run().exit_code == 0
    command = ("withdraw", "small-0001", "--reason", "a mistake")
    assert release.ask(point, *command, entry="killed").exit_code == -9
    if sink == "postgresql":
        expected = RELEASED if point == "rows removed" else RELEASED[:1]
        assert place.list_readable() == expected
        assert place.list_manifests() == ["to/small/0001/manifest.json"]
    assert release.ask(*command).exit_code == 0
    assert place.list_readable() == RELEASED[:1]
    assert place.list_objects() == ["to/small/0001/withdrawn.json"]
    assert count_events(release, "removed") == 2


def count_events(release: Small, kind: str) -> int:
    """Return the number of events of a kind in the history of a home."""
    with Store(Home(release.home)).transaction("tests") as db:
        query = "select count(*) from meta.event where kind = ?"
        return int(db.execute(query, [kind]).fetchall()[0][0])


@pytest.fixture
def small_database(place: Place, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A disk with an empty database whose schema can take releases."""
    name = f"f{uuid.uuid4().hex[:12]}"
    # The server may not look into the folders of a test.
    folder = Path(tempfile.mkdtemp(prefix="ppdm-disk-", dir="/tmp"))
    folder.chmod(0o755)
    with mount_disk(folder / "disk", DISK) as disk:
        (disk / "data").mkdir()
        os.chown(disk / "data", UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        place.server.run(
            f"create tablespace {name} location '{disk / 'data'}'",
            f"create database {name} tablespace {name}",
            f"grant create on database {name} to writer",
        )
        place.server.run("create schema open authorization writer", database=name)
        yield disk, name
        place.server.run(f"drop database {name} (force)", f"drop tablespace {name}")
    shutil.rmtree(folder)


def test_release_full_database_then_full_bucket_next_run_completes(
    place: Place, small_database: tuple[Path, str]
) -> None:
    """Nothing is published while one of them is full, and all three runs are one release."""
    release, (disk, name) = place.release, small_database
    release.content["sinks"][2]["url"] = place.server.url(name, "writer")
    release.write()
    full = replace(place, database=name)
    ballast = fill_disk(disk, 0)
    check_trouble(full, "is gone, or out of space")
    ballast.unlink()
    try:
        place.buckets.full.write_text("507 XMinioStorageFull")
        check_trouble(full, "has no space left")
    finally:
        place.buckets.full.unlink()
    assert release.run().exit_code == 0
    assert full.list_readable() == RELEASED
    assert release.ask("verify", f"s3://{place.bucket}/to/small/0001").exit_code == 0
    verified = release.ask("verify", full.url("reader"), "--table", "open.small_0001")
    assert verified.exit_code == 0
    assert {each for each, _ in charges(release.home)} == {"small-0001"}


def check_trouble(place: Place, words: str) -> None:
    """Run the release: exit code 5, and nothing that a recipient can read."""
    found = place.release.run()
    shown = " ".join((found.stdout + found.stderr).split())
    assert found.exit_code == 5 and words in shown, shown
    assert PASSWORD not in shown and "Traceback" not in shown
    assert place.release.versions() == [] and place.list_readable() == []
    assert not any(each.endswith("manifest.json") for each in place.list_objects())


def test_release_wrong_sinks_refused_with_exit_2(place: Place) -> None:
    release = place.release
    sink = release.content["sinks"][2]
    for key, value, words in (
        ("schema", "none", "does not exist"),
        ("reader", "none", "does not exist"),
        ("url", f"postgresql://writer@127.0.0.1:{find_free_port()}/x", "cannot be reached"),
        ("url", "postgresql://writer:CANARYpw@127.0.0.1/x", "contains a password"),
    ):
        release.content["sinks"][2] = {**sink, key: value}
        release.write()
        found = release.run()
        shown = found.stdout + found.stderr
        assert found.exit_code == 2 and words in " ".join(shown.split()), shown
        assert "CANARYpw" not in shown and "Traceback" not in shown
        assert release.versions() == [] and place.list_readable() == []
    release.content["sinks"][2] = sink
    release.write()
    release.env["PGPASSWORD"] = "CANARYwrong"
    found = release.run()
    shown = found.stdout + found.stderr
    assert found.exit_code == 2 and "refuses the login" in " ".join(shown.split())
    assert "CANARYwrong" not in shown


def test_withdraw_server_gone_completed_later(place: Place) -> None:
    release = place.release
    assert release.run().exit_code == 0
    release.env["AWS_SECRET_ACCESS_KEY"] = "CANARYwrong"
    found = release.ask("withdraw", "small-0001", "--reason", "a mistake")
    shown = found.stdout + found.stderr
    assert found.exit_code == 5 and "CANARYwrong" not in shown
    assert "is withdrawn, and still in its s3 sink" in " ".join(shown.split())
    assert place.list_readable() == ["open.ppdm_manifests"]
    release.env["AWS_SECRET_ACCESS_KEY"] = place.buckets.writer["secret_access_key"]
    assert release.ask("withdraw", "small-0001", "--reason", "a mistake").exit_code == 0
    assert place.list_objects() == ["to/small/0001/withdrawn.json"]
