from __future__ import annotations

import pytest

from ppdm_core.model.errors import BadInput
from tests.contract.checks_sinks import make_delivery
from tests.support.servers import Buckets, start_buckets
from warehouse.sinks import SINKS, ServerSink
from warehouse.sinks.s3 import S3

SINK = S3()


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


def test_check_target_public_bucket_refused_unless_waived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with start_buckets(checks_keys=False) as server:
        server.set_environment(monkeypatch)
        server.client().create_bucket(Bucket="open")
        with pytest.raises(BadInput, match="Any person can list"):
            SINK.check_target(make_delivery("s3", {"url": "s3://open/p"}))
        SINK.check_target(make_delivery("s3", {"url": "s3://open/p", "waive": "listed"}))


def test_check_target_reader_refused(buckets: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    buckets.client().create_bucket(Bucket="read-only")
    buckets.set_environment(monkeypatch, is_reader=True)
    with pytest.raises(BadInput, match="refuses access"):
        SINK.check_target(make_delivery("s3", {"url": "s3://read-only/p"}))


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("s3", {"url": "s3://key:CANARY@bucket/p"}, "not of the form"),
        ("s3", {"url": "s3://b/p", "endpoint": "https://a:CANARY@host"}, "contains a password"),
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
