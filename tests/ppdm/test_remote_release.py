"""Releases in databases and buckets as recipients verify them."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ppdm.remote_release import fetch_bucket_version, verify_database
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.manifest import Verified, sign
from ppdm_core.model.withdrawal import FIELDS, NOTICE_NAME, Notice, check_notice, sign_notice
from tests.contract.checks_sinks import make_delivery, write_folder
from tests.contract.test_sinks import make_database
from tests.support.servers import PASSWORD, Buckets, Postgresql
from warehouse.publishing.manifest import verify
from warehouse.sinks import SINKS, Delivery, ServerSink

KEY, OTHER_KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
TABLE = "open.t_0001"


def get_sink(kind: str) -> ServerSink:
    sink = SINKS[kind]
    assert isinstance(sink, ServerSink)
    return sink


def make_manifest(delivery: Delivery, folder: Path, rows_digest: str) -> bytes:
    """Return the signed manifest of a version with the files in a folder."""
    files = {
        path.name: {
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size,
        }
        for path in folder.iterdir()
    }
    place = get_sink(delivery.kind).describe_place(delivery)
    more = {"release_id": "t-0001", "files": files, "rows_digest": rows_digest, "sinks": [place]}
    return sign({"rows": 6, **more}, KEY)


def make_notice() -> bytes:
    return sign_notice({**dict.fromkeys(FIELDS, "t"), "reason": "a mistake"}, KEY)


@pytest.fixture
def in_database(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Delivery:
    """A delivered version."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    delivery = make_delivery("postgresql", make_database(postgresql).options)
    digest = write_folder(tmp_path)
    sink = get_sink("postgresql")
    sink.stage(delivery, tmp_path)
    sink.expose(delivery, make_manifest(delivery, tmp_path, digest))
    return delivery


def run(postgresql: Postgresql, delivery: Delivery, statement: str) -> None:
    postgresql.run(statement, database=delivery.options["url"].rpartition("/")[2])


def read_url(delivery: Delivery) -> str:
    return delivery.options["url"].replace("writer@", "reader@")


@pytest.mark.extended
def test_verify_database_with_rights_of_a_reader(in_database: Delivery) -> None:
    found = verify_database(read_url(in_database), TABLE, KEY.public_key())
    assert isinstance(found, Verified) and found.manifest["release_id"] == "t-0001"
    with pytest.raises(Refused):
        verify_database(read_url(in_database), TABLE, OTHER_KEY.public_key())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("update open.t_0001 set \"x 1\" = 7 where ctid = '(0,1)'", "was changed"),
        ("delete from open.t_0001 where ctid = '(0,1)'", "was changed"),
        ("insert into open.t_0001 select * from open.t_0001 limit 1", "was changed"),
        ("alter table open.t_0001 add y text", "was changed"),
        ('alter table open.t_0001 rename "x 1" to y', "was changed"),
        ("alter table open.t_0001 add k int", "neither numbers nor text"),
        ("update open.ppdm_manifests set document = replace(document, '6', '7')", "was changed"),
    ],
)
def test_verify_database_any_change_refused(
    statement: str, words: str, in_database: Delivery, postgresql: Postgresql
) -> None:
    run(postgresql, in_database, statement)
    with pytest.raises(Refused, match=words):
        verify_database(read_url(in_database), TABLE, KEY.public_key())


@pytest.mark.extended
def test_verify_database_other_table_refused(in_database: Delivery, postgresql: Postgresql) -> None:
    for statement in (
        "alter table open.t_0001 rename to t_0002",
        "update open.ppdm_manifests set table_name = 't_0002'",
    ):
        run(postgresql, in_database, statement)
    with pytest.raises(Refused, match="is not the table that its manifest is about"):
        verify_database(read_url(in_database), "open.t_0002", KEY.public_key())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("table", "words"), [("t_0001", "not named with its schema"), ("open.none", "no manifest")]
)
def test_verify_database_wrong_name_refused(table: str, words: str, in_database: Delivery) -> None:
    with pytest.raises(BadInput, match=words):
        verify_database(read_url(in_database), table)


@pytest.mark.extended
def test_verify_database_withdrawn_gives_the_notice(in_database: Delivery) -> None:
    get_sink("postgresql").remove(in_database, make_notice())
    found = verify_database(read_url(in_database), TABLE, KEY.public_key())
    assert isinstance(found, Notice)


@pytest.fixture
def in_bucket(buckets: Buckets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Delivery:
    """A delivered version."""
    bucket = f"r{uuid.uuid4().hex[:12]}"
    buckets.client().create_bucket(Bucket=bucket)
    buckets.set_environment(monkeypatch)
    delivery = make_delivery("s3", {"url": f"s3://{bucket}/p"})
    digest, sink = write_folder(tmp_path), get_sink("s3")
    sink.stage(delivery, tmp_path)
    sink.expose(delivery, make_manifest(delivery, tmp_path, digest))
    buckets.set_environment(monkeypatch, is_reader=True)
    return delivery


def get_url(delivery: Delivery) -> str:
    return f"{delivery.options['url']}/t/0001"


def change_object(buckets: Buckets, delivery: Delivery, name: str, content: bytes | None) -> None:
    place = urlsplit(get_sink("s3").describe_place(delivery)["url"])
    key, client = f"{place.path[1:]}{name}", buckets.client()
    if content is None:
        client.delete_object(Bucket=place.netloc, Key=key)
    else:
        client.put_object(Bucket=place.netloc, Key=key, Body=content)


@pytest.mark.extended
def test_fetch_version_with_rights_of_a_reader(in_bucket: Delivery) -> None:
    for url in (
        get_url(in_bucket),
        f"{get_url(in_bucket)}/",
        f"{get_url(in_bucket)}/manifest.json",
    ):
        with fetch_bucket_version(url) as folder:
            names = {path.name for path in folder.iterdir()}
            found = verify(folder, KEY.public_key())
        assert names == {"card.md", "data.parquet", "manifest.json"}
        assert found.manifest["release_id"] == "t-0001" and not folder.exists()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("card.md", b"other", "was changed"),
        ("data.parquet", b"other", "was changed"),
        ("card.md", None, "is missing"),
    ],
)
def test_fetch_version_changed_object_refused(
    name: str, content: bytes | None, words: str, in_bucket: Delivery, buckets: Buckets
) -> None:
    change_object(buckets, in_bucket, name, content)
    with (
        fetch_bucket_version(get_url(in_bucket)) as folder,
        pytest.raises(Refused, match=words),
    ):
        verify(folder, KEY.public_key())


@pytest.mark.extended
def test_fetch_version_withdrawn_gives_the_notice(
    in_bucket: Delivery, buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.set_environment(monkeypatch)
    get_sink("s3").remove(in_bucket, make_notice())
    buckets.set_environment(monkeypatch, is_reader=True)
    with fetch_bucket_version(get_url(in_bucket)) as folder:
        assert [path.name for path in folder.iterdir()] == [NOTICE_NAME]
        raw = (folder / NOTICE_NAME).read_bytes()
        notice = check_notice(folder, raw, {NOTICE_NAME}, KEY.public_key())
    assert "a mistake" in notice.sentence


@pytest.mark.extended
def test_fetch_version_none_there_refused(in_bucket: Delivery) -> None:
    url = f"{in_bucket.options['url']}/t/0002"
    with pytest.raises(BadInput, match="no such object"), fetch_bucket_version(url):
        pass
