"""Databases, buckets and sheets that cannot be read: the exit code and the sentence by command."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.support.forkserver import Result
from tests.support.servers import PASSWORD, Buckets, Postgresql, find_free_port
from tests.support.small_release import Small

Maker = Callable[..., Small]
CANARY = "CANARYwrong"


@dataclass(frozen=True)
class Servers:
    postgresql: Postgresql
    buckets: Buckets


@dataclass(frozen=True)
class Bad:
    """A source that cannot be read: [source], the environment, and what commands say."""

    source: dict[str, Any]
    words: str
    env: dict[str, str]


def in_database(servers: Servers, folder: Path, **changes: Any) -> dict[str, Any]:
    return {"kind": "postgresql", "url": servers.postgresql.url(), "table": "visits", **changes}


def in_bucket(servers: Servers, **changes: Any) -> dict[str, Any]:
    bucket = f"x{uuid.uuid4().hex[:12]}"
    servers.buckets.client().create_bucket(Bucket=bucket)
    content = b"a,b\n1,2\n3,4\n"
    servers.buckets.client().put_object(Bucket=bucket, Key="t.csv", Body=content)
    path = f"s3://{bucket}/t.csv"
    return {"kind": "csv", "path": path, "endpoint": servers.buckets.endpoint, **changes}


def wrong_password(servers: Servers, folder: Path) -> Bad:
    env = {"PGPASSWORD": CANARY}
    return Bad(in_database(servers, folder), "refuses the login", env)


def password_in_url(servers: Servers, folder: Path) -> Bad:
    url = servers.postgresql.url().replace("@", f":{CANARY}@")
    return Bad(in_database(servers, folder, url=url), "contains a password", {})


def split_password_in_url(servers: Servers, folder: Path) -> Bad:
    url = servers.postgresql.url().replace("@", f":12/{CANARY}@")
    return Bad(in_database(servers, folder, url=url), "contains a password", {})


def missing_table(servers: Servers, folder: Path) -> Bad:
    return Bad(in_database(servers, folder, table="none"), "The table 'none' is not in", {})


def unreachable_database(servers: Servers, folder: Path) -> Bad:
    url = f"postgresql://admin@127.0.0.1:{find_free_port()}/postgres"
    return Bad(in_database(servers, folder, url=url), "cannot be reached", {})


def database_without_tls(servers: Servers, folder: Path) -> Bad:
    url = "postgresql://admin@db.example.org/postgres"
    return Bad(in_database(servers, folder, url=url), "does not ask for TLS", {})


def wrong_keys(servers: Servers, folder: Path) -> Bad:
    env = {"AWS_SECRET_ACCESS_KEY": CANARY}
    return Bad(in_bucket(servers), "refuses access", env)


def missing_object(servers: Servers, folder: Path) -> Bad:
    path = f"{in_bucket(servers)['path']}.none"
    return Bad(in_bucket(servers, path=path), "no such object", {})


def unreachable_bucket(servers: Servers, folder: Path) -> Bad:
    endpoint = f"http://127.0.0.1:{find_free_port()}"
    return Bad(in_bucket(servers, endpoint=endpoint), "cannot be reached", {})


def write_sheet(folder: Path, *rows: tuple[Any, ...]) -> dict[str, Any]:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(folder / "t.xlsx")
    return {"kind": "excel", "path": "t.xlsx"}


def sheet_without_names(servers: Servers, folder: Path) -> Bad:
    source = write_sheet(folder, (f"{CANARY} 2024",), (1, 2), (3, 4))
    return Bad(source, "is not a header", {})


def sheet_of_formulas(servers: Servers, folder: Path) -> Bad:
    source = write_sheet(folder, ("a", "b"), (1, f'=A2&"{CANARY}"'), (3, 4))
    return Bad(source, "has formulas without results", {})


def no_workbook(servers: Servers, folder: Path) -> Bad:
    (folder / "t.xlsx").write_text(CANARY)
    return Bad({"kind": "excel", "path": "t.xlsx"}, "not a table that can be read as Excel", {})


BAD = (
    wrong_password,
    password_in_url,
    split_password_in_url,
    missing_table,
    unreachable_database,
    database_without_tls,
    wrong_keys,
    missing_object,
    unreachable_bucket,
    sheet_without_names,
    sheet_of_formulas,
    no_workbook,
)


def draft(release: Small, source: dict[str, Any]) -> Result:
    """`ppdm init` of the same source; keys without an option come from the environment."""
    place = source.get("url") or str(release.folder / source["path"])
    if "://" in source.get("path", ""):
        place = source["path"]
        release.env["AWS_ENDPOINT_URL"] = source["endpoint"]
    table = ["--table", source["table"]] if "table" in source else []
    return release.ask("init", place, *table, "--out", str(release.folder / "draft.toml"))


@pytest.fixture
def servers(postgresql: Postgresql, buckets: Buckets) -> Servers:
    postgresql.run("create table if not exists visits as select 1 as a, 2 as b")
    return Servers(postgresql, buckets)


@pytest.mark.extended
@pytest.mark.parametrize("command", ["init", "check", "release"])
@pytest.mark.parametrize("make_bad", BAD, ids=lambda each: each.__name__)
def test_bad_source_one_sentence_exit_2_nothing_made(
    command: str, make_bad: Callable[..., Bad], servers: Servers, small: Maker
) -> None:
    release = small()
    bad = make_bad(servers, release.folder)
    keys = {f"AWS_{name.upper()}": text for name, text in servers.buckets.writer.items()}
    release.env |= {"PGPASSWORD": PASSWORD, **keys, **bad.env}
    release.content["source"] = bad.source
    release.write()
    found = draft(release, bad.source) if command == "init" else release.run(command)
    shown = " ".join((found.stdout + found.stderr).split())
    assert found.exit_code == 2 and bad.words in shown, shown
    assert shown.count("ppdm: ") == 1 and "Traceback" not in shown
    assert CANARY not in shown and PASSWORD not in shown
    assert not (release.folder / "draft.toml").exists() and release.versions() == []
    for path in release.folder.rglob("*"):
        if path.is_file() and path not in (release.file, release.folder / "t.xlsx"):
            content = path.read_bytes()
            assert CANARY.encode() not in content and PASSWORD.encode() not in content, path
