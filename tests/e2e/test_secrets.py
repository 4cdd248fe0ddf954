"""Passwords and keys of servers are nowhere, whether a release succeeds or fails."""

from __future__ import annotations

import base64
import gzip
import os
import subprocess
from pathlib import Path

import duckdb
import pytest

from tests.e2e.test_sinks import Place, place
from tests.support.forkserver import Result
from tests.support.secret_search import find_in_files, has_secret, watch_processes
from tests.support.servers import PASSWORD

pytestmark = pytest.mark.slow
assert place  # a fixture


def list_secrets(place: Place) -> list[str]:
    return [PASSWORD, place.buckets.writer["secret_access_key"]]


def find_in_database(place: Place, secrets: list[str]) -> list[str]:
    """Return the tables that hold a secret, the server's own included."""
    run = place.server.run
    tables = run(
        "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables "
        "where tablename <> 'pg_statistic'",
        database=place.database,
    )
    return [
        name
        for (name,) in tables
        for (text,) in run(
            f"select string_agg(t::text, ' ') from {name} t", database=place.database
        )
        if has_secret((text or "").encode(), secrets)
    ]


def find_in_bucket(place: Place, folder: Path, secrets: list[str]) -> list[str]:
    client = place.buckets.client()
    folder.mkdir()
    for number, name in enumerate(place.list_objects()):
        content = client.get_object(Bucket=place.bucket, Key=name)["Body"].read()
        (folder / f"{number}").write_bytes(name.encode() if content == b"" else content)
    return find_in_files(folder, secrets)


def write_credentials(place: Place, folder: Path) -> None:
    """Give passwords and keys in files in place of the environment."""
    release = place.release
    database, bucket = folder / "database.toml", folder / "bucket.toml"
    keys = {name: place.buckets.writer[name] for name in ("access_key_id", "secret_access_key")}
    for path, given in ((database, {"password": PASSWORD}), (bucket, keys)):
        path.touch(mode=0o600)
        path.write_text("".join(f'{name} = "{text}"\n' for name, text in given.items()))
    release.content["source"]["credentials"] = str(database)
    release.content["sinks"][2]["credentials"] = str(database)
    release.content["sinks"][3]["credentials"] = str(bucket)
    for name in ("PGPASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        release.env[name] = None
    release.write()


@pytest.mark.parametrize("way", ["environment", "files"])
def test_release_passwords_nowhere_after_success_and_failure(
    way: str, place: Place, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    release, secrets = place.release, list_secrets(place)
    if way == "files":
        write_credentials(place, tmp_path_factory.mktemp("credentials"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    release.env["TMPDIR"] = str(temporary)
    results: list[Result] = []
    with watch_processes() as commands:
        results.append(release.run("check"))
        results.append(release.run())
        target = release.content["sinks"][3].pop("url")
        release.content["sinks"][3]["url"] = "s3://no-such-bucket/to"
        release.write()
        results.append(release.run())
        release.content["sinks"][3]["url"] = target
        release.write()
        results.append(release.ask("withdraw", "small-0001", "--reason", "a mistake"))
        results.append(release.ask("history", "small"))
    assert [each.exit_code for each in results[:4]] == [0, 0, 2, 0], results
    shown = "".join(each.stdout + each.stderr for each in results).encode()
    assert not has_secret(shown, secrets)
    assert len(commands) > 3 and not any(has_secret(each, secrets) for each in commands)
    for folder in (release.folder, temporary):
        assert find_in_files(folder, secrets) == []
    assert find_in_database(place, secrets) == []
    assert find_in_bucket(place, tmp_path / "objects", secrets) == []


def test_search_planted_passwords_all_found(place: Place, tmp_path: Path) -> None:
    """The search of the test above finds them in each place."""
    secret = PASSWORD
    plant = tmp_path / "planted"
    plant.mkdir()
    (plant / "plain").write_text(f"x{secret}")
    (plant / "base64").write_bytes(base64.b64encode(f"ab{secret}cd".encode()))
    (plant / "hex").write_text(f"x{secret}".encode().hex())
    with gzip.open(plant / "gzip", "wb") as file:
        file.write(secret.encode() * 100)
    repeated = f"select '{secret}' || (i % 3) as a from range(10000) r(i)"
    with duckdb.connect(str(plant / "t.duckdb")) as db:
        db.execute(f"create table t as {repeated}")
        db.execute(f"copy ({repeated}) to '{plant / 't.parquet'}' (format parquet)")
    (plant / "nothing").write_text("nothing")
    names = {path.name for path in plant.iterdir()} - {"nothing"}
    assert {*find_in_files(plant, [secret])} == names
    place.server.run(f"create table open.c as select '{secret}' as a", database=place.database)
    assert find_in_database(place, [secret]) == ["open.c"]
    client = place.buckets.client()
    client.put_object(Bucket=place.bucket, Key="c", Body=secret.encode())
    assert len(find_in_bucket(place, tmp_path / "objects", [secret])) == 1
    with watch_processes() as commands:
        subprocess.run(["sleep", "0.5"], env={**os.environ})
        subprocess.run(["sh", "-c", f"sleep 0.5; : {secret}"])
    assert any(has_secret(each, [secret]) for each in commands)
