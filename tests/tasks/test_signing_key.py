"""Private key files: what is written, and which files are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from ppdm.cli.serve import check_author_variables
from ppdm.release_folder import read_public_key
from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import key_fingerprint
from tasks import signing_key
from tasks.signing_key import PASSPHRASE_VARIABLE, read_private_key, write_key_pair
from tests.support.contexts import create_home
from tests.support.signed_homes import KEYS, get_public
from warehouse.database import Store
from warehouse.reviewers import add_reviewer

PASSPHRASE = "a long passphrase"


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "alice.pem"
    write_key_pair(path, path.with_suffix(".pub"), PASSPHRASE)
    return path


def test_write_key_pair_readable_by_owner_with_passphrase_only(tmp_path: Path) -> None:
    private, public = tmp_path / "alice.pem", tmp_path / "alice.pub"
    fingerprint = write_key_pair(private, public, PASSPHRASE)
    assert private.stat().st_mode & 0o777 == 0o600
    assert private.read_text().startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    found = read_private_key(private, PASSPHRASE).public_key()
    assert found == read_public_key(public)
    assert key_fingerprint(found) == fingerprint


def test_read_private_key_passphrase_of_environment_used(
    key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSPHRASE_VARIABLE, PASSPHRASE)
    found = read_private_key(key).public_key()
    assert found == read_private_key(key, PASSPHRASE).public_key()


@pytest.mark.parametrize("passphrase", ["", "x" * 1024])
def test_write_key_pair_bad_passphrase_nothing_written(tmp_path: Path, passphrase: str) -> None:
    with pytest.raises(BadInput, match="A key needs a passphrase"):
        write_key_pair(tmp_path / "a.pem", tmp_path / "a.pub", passphrase)
    assert list(tmp_path.iterdir()) == []


def write_unprotected(path: Path) -> None:
    pem = KEYS["sam"].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem)


def write_rsa(path: Path) -> None:
    made = rsa.generate_private_key(65537, 1024)
    protection = BestAvailableEncryption(PASSPHRASE.encode())
    path.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no file": (Path.unlink, "alice.pem is not a private key for signatures"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "is not a private key"),
    "a pipe": (lambda path: (path.unlink(), os.mkfifo(path, 0o600)), "is not a private key"),
    "no key": (lambda path: path.write_text("x"), "is not a private key"),
    "another kind": (write_rsa, "is not a private key"),
    "unprotected": (write_unprotected, "The key in alice.pem has no passphrase"),
    "readable by a group": (lambda path: path.chmod(0o640), "Other users can use the key"),
    "readable by all": (lambda path: path.chmod(0o604), "it has mode 604"),
}


@pytest.mark.parametrize("what", FILES)
def test_read_private_key_bad_file_bad_input(key: Path, what: str) -> None:
    damage, sentence = FILES[what]
    damage(key)
    with pytest.raises(BadInput, match=sentence) as caught:
        read_private_key(key, PASSPHRASE)
    assert PASSPHRASE not in str(caught.value)


@pytest.mark.parametrize(
    ("passphrase", "sentence"),
    [("wrong", "The passphrase is not that of"), ("", "needs its passphrase"), (None, "needs its")],
)
def test_read_private_key_wrong_passphrase_bad_input(
    key: Path, passphrase: str | None, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        read_private_key(key, passphrase)


def test_load_author_key_home_without_keys_environment_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_KEY", str(tmp_path / "missing.pem"))
    monkeypatch.setenv(PASSPHRASE_VARIABLE, PASSPHRASE)
    signing_key.load_author_key(tmp_path / "home")
    assert signing_key.AUTHOR_KEY.get() is None
    assert PASSPHRASE_VARIABLE not in os.environ  # no child process inherits it


def test_find_author_key_home_with_keys_from_variables_or_bad_input(
    key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = create_home(key.parent / "home")
    public = read_private_key(key, PASSPHRASE).public_key().public_bytes_raw().hex()
    with Store(home).transaction("tests") as db:
        add_reviewer(db, "first", get_public("first"), None)
        add_reviewer(db, "alice", public, KEYS["first"])
    monkeypatch.delenv("PPDM_KEY", raising=False)
    with pytest.raises(BadInput, match="the author of a release signs it"):
        check_author_variables(home.root)  # of `ppdm serve`
    monkeypatch.chdir(key.parent)
    monkeypatch.setenv("PPDM_KEY", key.name)
    with pytest.raises(BadInput, match="needs its passphrase"):
        check_author_variables(home.root)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, PASSPHRASE)
    check_author_variables(home.root)
    assert os.environ["PPDM_KEY"] == str(key)  # releases run in another folder
    assert os.environ[PASSPHRASE_VARIABLE] == PASSPHRASE  # and need it
