from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble
from tests.support.servers import Buckets, find_free_port
from warehouse.columns import Source
from warehouse.sources import SOURCES
from warehouse.sources.bucket_files import _compile
from warehouse.sources.guess import guess_source

BUCKET = "sources"


@pytest.fixture(scope="module")
def client(buckets: Buckets) -> Any:
    """A client of the server, with a bucket that has two files in each of two folders."""
    found = buckets.client()
    found.create_bucket(Bucket=BUCKET)
    for folder in ("a", "b"):
        for i in range(2):
            body = "place,c\n" + "".join(f"{i * 10 + k},x\n" for k in range(10))
            found.put_object(Bucket=BUCKET, Key=f"{folder}/part-{i}.csv", Body=body.encode())
    found.put_object(Bucket=BUCKET, Key="a/_SUCCESS", Body=b"")
    return found


@pytest.fixture
def keys(buckets: Buckets, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    buckets.set_environment(monkeypatch, is_reader=True)


def load(source: Source) -> list[int]:
    with duckdb.connect(":memory:") as db:
        SOURCES[source.kind].load(db, source, "main.t")
        rows = db.execute("select place::bigint from main.t order by __ppdm_row").fetchall()
    return [place for (place,) in rows]


def read_error(source: Source) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load(source)
    assert caught.value.remedy
    return caught.value


@pytest.mark.extended
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("key", "files"), [("a/part-1.csv", 1), ("a/", 2), ("*/part-*.csv", 4), ("**/part-0.csv", 2)]
)
def test_load_objects_same_as_copy(key: str, files: int, tmp_path: Path) -> None:
    source, reader = Source("csv", f"s3://{BUCKET}/{key}"), SOURCES["csv"]
    rows = load(source)
    assert len(rows) == 10 * files
    copy, digest = reader.copy(source, tmp_path)
    assert Path(copy.path).is_relative_to(tmp_path)
    assert load(copy) == rows
    assert digest == reader.digest(source) == reader.digest(copy)
    assert reader.read_names(source) == ["place", "c"]
    assert guess_source(source.path, None) == source


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"s3://{BUCKET}/none.csv", "no such object or bucket"),
        (f"s3://{BUCKET}/none-*.csv", "No file is found"),
        ("s3://no-such-bucket/a/", "no such object or bucket"),
    ],
)
def test_load_missing_objects_refused(url: str, words: str) -> None:
    error = read_error(Source("csv", url))
    assert words in error.message and error.file == url


@pytest.mark.usefixtures("keys")
def test_load_bad_object_named_by_url(client: Any) -> None:
    client.put_object(Bucket=BUCKET, Key="bad/x.csv", Body=b"a,b\n1,\xff\n")
    error = read_error(Source("csv", f"s3://{BUCKET}/bad/"))
    assert error.file == f"s3://{BUCKET}/bad/x.csv" and "see line 2" in error.message


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("key", ["a/", "a/part-0.csv"])
def test_load_wrong_secret_refused_without_showing_it(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "CANARYsecret")
    error = read_error(Source("csv", f"s3://{BUCKET}/{key}"))
    assert "refuses access" in error.message
    assert "CANARY" not in f"{error}{error.as_dict()}{error.__cause__}"


@pytest.mark.usefixtures("keys")
def test_load_unreachable_server_refused() -> None:
    endpoint = f"http://127.0.0.1:{find_free_port()}"
    error = read_error(Source("csv", f"s3://{BUCKET}/a/", {"endpoint": endpoint}))
    assert "cannot be reached" in error.message


@pytest.mark.usefixtures("keys")
def test_load_server_gone_in_the_middle_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    import warehouse.sources.files as files

    source = Source("csv", f"s3://{BUCKET}/a/")
    listed = files.list_files(source, SOURCES["csv"].endings)
    monkeypatch.setattr(files, "list_files", lambda *_: listed)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{find_free_port()}")
    with pytest.raises(MachineTrouble) as caught:
        load(source)
    assert caught.value.exit_code == 5


def test_load_without_keys_refused(client: Any) -> None:
    assert "No keys are given" in read_error(Source("csv", f"s3://{BUCKET}/a/")).message


def test_load_credentials_file_read_if_private(
    buckets: Buckets, client: Any, tmp_path: Path
) -> None:
    file = tmp_path / "keys.toml"
    file.write_text("".join(f'{name} = "{text}"\n' for name, text in buckets.reader.items()))
    options = {"credentials": str(file), "endpoint": buckets.endpoint}
    source = Source("csv", f"s3://{BUCKET}/a/", options)
    file.chmod(0o644)
    assert "can be read by others" in read_error(source).message
    file.chmod(0o600)
    assert len(load(source)) == 20
    file.write_text("CANARY")
    error = read_error(source)
    assert "not in the expected form" in error.message and "CANARY" not in str(error)


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("a/*.csv", "a/x.csv", True),
        ("a/*.csv", "a/b/x.csv", False),
        ("a/**/*.csv", "a/b/c/x.csv", True),
        ("a/**/*.csv", "a/x.csv", True),
        ("a/?.[ct]sv", "a/x.tsv", True),
        ("a/[!x].csv", "a/x.csv", False),
        ("a.b/*", "aXb/c", False),
    ],
)
def test_pattern_as_in_a_shell(pattern: str, name: str, is_match: bool) -> None:
    assert bool(_compile(pattern).fullmatch(name)) == is_match
