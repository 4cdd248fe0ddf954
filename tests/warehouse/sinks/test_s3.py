from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble, Refused
from tests.contract.checks_sinks import make_delivery, write_folder
from tests.support.answers import serve
from tests.support.servers import Buckets, find_free_port, start_buckets
from warehouse.bucket_objects import PART_BYTES, create_object
from warehouse.buckets import is_listed_publicly, open_bucket
from warehouse.sinks import SINKS, Delivery, ServerSink
from warehouse.sinks.s3 import S3

SINK = S3()


@pytest.mark.extended
def test_check_target_versioned_bucket_refused_unless_waived(
    buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.set_environment(monkeypatch)
    client = buckets.client()
    client.create_bucket(Bucket="keeps-all")
    client.put_bucket_versioning(Bucket="keeps-all", VersioningConfiguration={"Status": "Enabled"})
    with pytest.raises(BadInput, match="keeps old versions"):
        SINK.check_target(make_delivery("s3", {"url": "s3://keeps-all/p"}))
    SINK.check_target(make_delivery("s3", {"url": "s3://keeps-all/p", "waive": "versioned"}))


@pytest.mark.extended
def test_check_target_public_bucket_refused_unless_waived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with start_buckets(checks_keys=False) as server:
        server.set_environment(monkeypatch)
        server.client().create_bucket(Bucket="open")
        with pytest.raises(BadInput, match="Any person can list"):
            SINK.check_target(make_delivery("s3", {"url": "s3://open/p"}))
        SINK.check_target(make_delivery("s3", {"url": "s3://open/p", "waive": "listed"}))


class Answer(BaseHTTPRequestHandler):
    """A server that answers a listing without keys with the number in its first name."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.split("/")[1]))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def answers() -> Iterator[str]:
    with serve(Answer) as address:
        yield address


@pytest.mark.extended
@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, True), (403, False), (401, False), (400, None), (404, None), (500, None)],
)
def test_is_listed_publicly_private_only_if_refused(
    answers: str, status: int, expected: bool | None
) -> None:
    found = is_listed_publicly("s3://b/p", {"endpoint": f"{answers}/{status}"}, "p/")
    assert found is expected


def test_is_listed_publicly_no_server_not_known() -> None:
    options = {"endpoint": f"http://127.0.0.1:{find_free_port()}"}
    assert is_listed_publicly("s3://b/p", options, "p/") is None


def test_check_target_listing_not_known_refused_unless_waived(
    buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.set_environment(monkeypatch)
    buckets.client().create_bucket(Bucket="unknown")
    monkeypatch.setattr("warehouse.sinks.s3.is_listed_publicly", lambda *args: None)
    with pytest.raises(BadInput, match="does not say whether any person can list"):
        SINK.check_target(make_delivery("s3", {"url": "s3://unknown/p"}))
    SINK.check_target(make_delivery("s3", {"url": "s3://unknown/p", "waive": "listed"}))


def test_check_target_reader_refused(buckets: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    buckets.client().create_bucket(Bucket="read-only")
    buckets.set_environment(monkeypatch, is_reader=True)
    with pytest.raises(BadInput, match="refuses access"):
        SINK.check_target(make_delivery("s3", {"url": "s3://read-only/p"}))


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("s3", {"url": "s3://key:CANARY@bucket/p"}, "not of the form"),
        ("s3", {"url": "s3://key%3ACANARY%40bucket/p"}, "not of the form"),
        ("s3", {"url": "s3://key:a/CANARY@bucket/p"}, "not of the form"),
        ("s3", {"url": "s3://bucket/p?secret_access_key=CANARY"}, "not of the form"),
        ("s3", {"url": "s3://b/p", "endpoint": "https://a:CANARY@host"}, "contains a password"),
        ("s3", {"url": "s3://b/p", "endpoint": "https://a:1/CANARY@host"}, "contains a password"),
        ("s3", {"url": "s3://b/p", "endpoint": "https://host:CANARY"}, "is not a URL"),
        ("s3", {"url": "s3://b/p", "endpoint": "https://host?x=CANARY"}, "is not supported"),
        ("s3", {"url": "s3://b/p", "endpoint": "http://example.org"}, "unencrypted"),
        ("s3", {"url": "s3://b/p", "waive": "all"}, "must be"),
        ("postgresql", {"url": "postgresql://a:CANARY@h/d"}, "contains a password"),
    ],
)
def test_check_options_wrong_refused(kind: str, options: dict[str, str], words: str) -> None:
    sink = SINKS[kind]
    assert isinstance(sink, ServerSink)
    with pytest.raises(BadInput, match=words) as caught:
        sink.check_options(options)
    assert "CANARY" not in f"{caught.value}{caught.value.as_dict()}"


@pytest.mark.parametrize(
    "answer",
    ["507 XMinioStorageFull", "403 QuotaExceeded", "400 XMinioAdminBucketQuotaExceeded"],
)
def test_stage_full_bucket_is_trouble_then_completed(
    buckets: Buckets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str
) -> None:
    buckets.set_environment(monkeypatch)
    name = f"full-{answer.split()[0]}"
    buckets.client().create_bucket(Bucket=name)
    delivery = make_delivery("s3", {"url": f"s3://{name}/p"})
    (tmp_path / "data.parquet").write_bytes(b"rows")
    try:
        buckets.full.write_text(answer)
        for step in (
            lambda: SINK.check_target(delivery),
            lambda: SINK.stage(delivery, tmp_path),
            lambda: SINK.expose(delivery, b"manifest"),
        ):
            with pytest.raises(MachineTrouble, match="has no space left") as error:
                step()
            assert error.value.exit_code == 5
    finally:
        buckets.full.unlink()
    assert "Contents" not in buckets.client().list_objects_v2(Bucket=name)
    SINK.stage(delivery, tmp_path)
    SINK.expose(delivery, b"manifest")
    found = buckets.client().list_objects_v2(Bucket=name)["Contents"]
    assert len(found) == 2


@pytest.fixture
def delivery(buckets: Buckets, monkeypatch: pytest.MonkeyPatch) -> Delivery:
    """A delivery to a new bucket."""
    bucket = f"n{uuid.uuid4().hex[:12]}"
    buckets.client().create_bucket(Bucket=bucket)
    buckets.set_environment(monkeypatch)
    return make_delivery("s3", {"url": f"s3://{bucket}/p"})


def put(buckets: Buckets, delivery: Delivery, name: str, content: bytes) -> str:
    """Write below the place of the files of a delivery, as somebody else."""
    place = urlsplit(SINK.describe_place(delivery)["url"])
    key = f"{place.path[1:]}{name}"
    buckets.client().put_object(Bucket=place.netloc, Key=key, Body=content)
    return key


@pytest.mark.parametrize("size", [10, 2 * PART_BYTES + 1])
def test_stage_what_an_earlier_attempt_wrote_is_replaced(
    size: int, delivery: Delivery, buckets: Buckets, tmp_path: Path
) -> None:
    content = os.urandom(size)
    (tmp_path / "data.parquet").write_bytes(content)
    key = put(buckets, delivery, "data.parquet", b"other")
    put(buckets, delivery, "more.csv", b"other")
    SINK.stage(delivery, tmp_path)
    client, bucket = buckets.client(), urlsplit(delivery.options["url"]).netloc
    assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == content
    assert len(client.list_objects_v2(Bucket=bucket)["Contents"]) == 1


def test_create_object_with_other_content_is_trouble_and_kept(
    delivery: Delivery, buckets: Buckets
) -> None:
    store = open_bucket(delivery.options["url"], {})
    key = put(buckets, delivery, "data.parquet", b"other")
    create_object(store, key, b"other")
    with pytest.raises(MachineTrouble, match="exists already with other content"):
        create_object(store, key, b"ours")
    bucket = urlsplit(delivery.options["url"]).netloc
    assert buckets.client().get_object(Bucket=bucket, Key=key)["Body"].read() == b"other"


@pytest.mark.parametrize("name", ["data.parquet", "card.md"])
def test_read_staged_changed_object_refused(
    name: str, delivery: Delivery, buckets: Buckets, tmp_path: Path
) -> None:
    write_folder(tmp_path)
    SINK.stage(delivery, tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    content[-1] ^= 1
    put(buckets, delivery, name, bytes(content))
    with pytest.raises(Refused, match=f"does not hold the file {name} as it is"):
        SINK.read_staged(delivery, tmp_path)


def test_read_staged_missing_object_refused(delivery: Delivery, tmp_path: Path) -> None:
    write_folder(tmp_path)
    SINK.stage(delivery, tmp_path)
    (tmp_path / "report.html").write_text("not staged")
    with pytest.raises(BadInput, match="no such object"):
        SINK.read_staged(delivery, tmp_path)
