"""Schedulers that do not answer, or that this client must not use."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ppdm.services import certificates
from ppdm_core.model.errors import BadInput
from tests.support.clusters import write_keys
from warehouse.clock import now
from warehouse.engines import EngineSettings
from warehouse.engines._connection import check_connection


@contextmanager
def listen(settings: EngineSettings) -> Iterator[str]:
    """Answer one connection as a scheduler does; yield the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(settings.ca)
    context.load_cert_chain(settings.certificate, settings.private_key)

    def answer() -> None:
        with suppress(OSError), context.wrap_socket(server.accept()[0], server_side=True):
            pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"tls://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def write_keys_of(folder: Path, age: timedelta, monkeypatch: pytest.MonkeyPatch) -> EngineSettings:
    """Write certificates as they would have been some time ago, with their authority."""
    with monkeypatch.context() as patched:
        patched.setattr(certificates, "now", lambda: now() - age)
        return write_keys(folder)


def test_check_connection_same_authority_passes(tmp_path: Path):
    settings = write_keys(tmp_path / "keys")
    with listen(settings) as address:
        check_connection(replace(settings, address=address))


def test_check_connection_other_authority_refused(tmp_path: Path):
    ours, theirs = write_keys(tmp_path / "ours"), write_keys(tmp_path / "theirs")
    whose = "certificate of the scheduler is not one of the authority"
    with listen(theirs) as address, pytest.raises(BadInput, match=whose):
        check_connection(replace(ours, address=address))
    whose = "certificate of this client is not one of the authority"
    with listen(theirs) as address, pytest.raises(BadInput, match=whose):
        check_connection(replace(ours, address=address, ca=theirs.ca))


@pytest.mark.parametrize("days", [certificates.VALID_DAYS + 1, -2])
def test_check_connection_certificate_outdated_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
):
    """Expired, or of a machine whose clock is ahead."""
    settings = write_keys_of(tmp_path / "keys", timedelta(days=days), monkeypatch)
    with (
        listen(settings) as address,
        pytest.raises(BadInput, match=r"certificate of the scheduler.* not valid at this time"),
    ):
        check_connection(replace(settings, address=address))


def test_check_connection_own_certificate_expired_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ours, theirs = write_two_clients(tmp_path, monkeypatch)
    with (
        listen(theirs) as address,
        pytest.raises(BadInput, match=r"certificate of this client.* not valid at this time"),
    ):
        check_connection(replace(ours, address=address))


def write_two_clients(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[EngineSettings, EngineSettings]:
    """Return settings with an expired certificate, and with a valid one of the same authority."""
    authority = ec.generate_private_key(ec.SECP256R1())
    root = certificates.sign("authority", authority, authority, None)
    found = []
    for name, days in (("expired", certificates.VALID_DAYS + 1), ("valid", 0)):
        settings = write_keys(folder / name)
        key = serialization.load_pem_private_key(Path(settings.private_key).read_bytes(), None)
        with monkeypatch.context() as patched:
            patched.setattr(certificates, "now", lambda days=days: now() - timedelta(days=days))
            signed = certificates.sign("node", key, authority, root)
        for path, each in ((settings.ca, root), (settings.certificate, signed)):
            Path(path).write_bytes(each.public_bytes(serialization.Encoding.PEM))
        found.append(settings)
    return found[0], found[1]


def test_check_connection_nothing_listens_refused(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = replace(write_keys(tmp_path / "k"), address=f"tls://127.0.0.1:{port}")
    with pytest.raises(BadInput, match="No scheduler answers at tls://127"):
        check_connection(settings)


def test_check_connection_no_tls_refused(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection = server.accept()[0]
            connection.sendall(b"220 hello, this is no TLS\r\n")
            connection.close()

        thread = threading.Thread(target=greet)
        thread.start()
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BadInput, match="has no TLS"):
            check_connection(replace(write_keys(tmp_path / "k"), address=address))
        thread.join()


def test_check_connection_key_that_others_can_read_refused(tmp_path: Path):
    settings = replace(write_keys(tmp_path / "k"), address="tls://127.0.0.1:1")
    Path(settings.private_key).chmod(0o644)
    with pytest.raises(BadInput, match=r"Others than its owner may read private\.key"):
        check_connection(settings)
    with pytest.raises(BadInput, match=r"ca\.pem does not exist"):
        check_connection(replace(settings, ca=str(tmp_path / "ca.pem")))
