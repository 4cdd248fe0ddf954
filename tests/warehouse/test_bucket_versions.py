from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from tests.contract.checks_sinks import make_delivery
from tests.support.answers import serve
from tests.support.servers import Buckets, find_free_port
from warehouse.bucket_versions import keeps_versions, sign_request
from warehouse.sinks.s3 import S3

URL = "s3://versions/p"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "a/secret+key"}
XML = '<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}</{}>'
ANSWERS = {
    "never": (200, XML.format("", "VersioningConfiguration"), False),
    "on": (200, XML.format("<Status>Enabled</Status>", "VersioningConfiguration"), True),
    "off": (200, XML.format("<Status>Suspended</Status>", "VersioningConfiguration"), True),
    "other": (200, "<html/>", None),
    "broken": (200, "<VersioningConfiguration>", None),
    "nothing": (200, "", None),
    "denied": (403, "<Error/>", None),
    "unknown": (501, "<Error/>", None),
    "moved": (307, "", None),
}


class Answer(BaseHTTPRequestHandler):
    """A server that gives the answer which its address names first."""

    def do_GET(self) -> None:
        status, text, _ = ANSWERS[self.path.split("/")[1]]
        self.send_response(status)
        if status == 307:
            self.send_header("Location", "/never/versions")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in KEYS.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    with serve(Answer) as address:
        yield address


@pytest.mark.parametrize("name", ANSWERS)
def test_keeps_versions_only_a_clear_answer_counts(name: str, answers: str) -> None:
    assert keeps_versions(URL, {"endpoint": f"{answers}/{name}"}) is ANSWERS[name][2]


@pytest.mark.usefixtures("answers")
def test_keeps_versions_no_server_not_known() -> None:
    assert keeps_versions(URL, {"endpoint": f"http://127.0.0.1:{find_free_port()}"}) is None


@pytest.mark.parametrize("status", ["Enabled", "Suspended"])
def test_keeps_versions_of_a_server_that_checks_signatures(
    status: str, buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.set_environment(monkeypatch)
    bucket, client = f"v-{status.lower()}", buckets.client()
    client.create_bucket(Bucket=bucket)
    assert keeps_versions(f"s3://{bucket}/p", {}) is False
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
    assert keeps_versions(f"s3://{bucket}/p", {}) is True
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "CANARYwrong")
    assert keeps_versions(f"s3://{bucket}/p", {}) is None


@pytest.mark.parametrize("keys", [KEYS, {**KEYS, "session_token": "a token"}])
def test_sign_request_same_as_botocore(keys: dict[str, str]) -> None:
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    address = "https://s3.example.org/a-bucket"
    ours = sign_request(address, keys, "eu-north-1", datetime.now(UTC))
    request = AWSRequest("GET", f"{address}?versioning=")
    request.context["payload_signing_enabled"] = True
    secrets = (keys["access_key_id"], keys["secret_access_key"], keys.get("session_token"))
    signer = S3SigV4Auth(Credentials(*secrets), "s3", "eu-north-1")
    request.context["timestamp"] = ours["x-amz-date"]
    for name, value in ours.items():
        if name.startswith("x-amz-"):
            request.headers[name] = value
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert ours["Authorization"].endswith(f"Signature={signer.signature(text, request)}")


def test_check_target_versions_not_known_refused_unless_waived(
    buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.set_environment(monkeypatch)
    buckets.client().create_bucket(Bucket="silent")
    monkeypatch.setattr("warehouse.sinks.s3.keeps_versions", lambda *args: None)
    with pytest.raises(BadInput, match="does not say whether the bucket silent keeps old versions"):
        S3().check_target(make_delivery("s3", {"url": "s3://silent/p"}))
    S3().check_target(make_delivery("s3", {"url": "s3://silent/p", "waive": "versioned"}))


def test_check_target_versions_suspended_refused(
    buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.set_environment(monkeypatch)
    client = buckets.client()
    client.create_bucket(Bucket="kept-once")
    for status in ("Enabled", "Suspended"):
        versioning = {"Status": status}
        client.put_bucket_versioning(Bucket="kept-once", VersioningConfiguration=versioning)
    with pytest.raises(BadInput, match="keeps old versions"):
        S3().check_target(make_delivery("s3", {"url": "s3://kept-once/p"}))
