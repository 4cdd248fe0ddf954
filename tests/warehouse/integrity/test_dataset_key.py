from __future__ import annotations

import json
from pathlib import Path

import pytest

from ppdm_core.model.errors import BadInput
from tests.support.contexts import read_noise
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.dataset_key import (
    NO_DATASET,
    backup_key,
    check_key,
    dataset_key_path,
    export_public_key,
    find_dataset_key,
    find_home_key,
    is_backed_up,
    restore_key,
)
from warehouse.integrity.events import append_event
from warehouse.integrity.home_key import home_key_path
from warehouse.integrity.key_files import compute_fingerprint
from warehouse.runs import add_dataset


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.create()
    store = Store(home)
    with store.transaction() as db:
        add_dataset(db, "wine", "cellar")
    return store


def test_dataset_noise_called_twice_same_key(store: Store) -> None:
    first = read_noise(store, "wine").subkey("test")
    assert read_noise(store, "wine").subkey("test") == first
    path = dataset_key_path(store.home, "wine")
    assert path.stat().st_mode & 0o777 == 0o600
    assert "<key>" in repr(read_noise(store, "wine"))
    assert path.read_text().strip() not in repr(vars(store))


def test_dataset_noise_unrecorded_key_file_used(store: Store) -> None:
    path = dataset_key_path(store.home, "wine")
    path.write_text("ab" * 32 + "\n")
    read_noise(store, "wine")
    assert path.read_text() == "ab" * 32 + "\n"


def test_dataset_noise_missing_key_bad_input(store: Store) -> None:
    read_noise(store, "wine")
    path = dataset_key_path(store.home, "wine")
    path.unlink()
    with pytest.raises(BadInput, match="ppdm key restore") as caught:
        read_noise(store, "wine")
    assert caught.value.exit_code == 2
    assert not path.exists()


@pytest.mark.extended
@pytest.mark.parametrize("content", ["00" * 32, "00" * 31, "no key", ""])
def test_dataset_noise_other_or_damaged_key_bad_input(store: Store, content: str) -> None:
    read_noise(store, "wine")
    dataset_key_path(store.home, "wine").write_text(content)
    with pytest.raises(BadInput, match="ppdm key restore"):
        read_noise(store, "wine")


def test_backup_key_restored_same_key(store: Store, tmp_path: Path) -> None:
    before = read_noise(store, "wine").subkey("test")
    out = tmp_path / "backup.json"
    backup_key(store, find_dataset_key(store, "wine"), out)
    assert out.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BadInput, match="exists already"):
        backup_key(store, find_dataset_key(store, "wine"), out)
    dataset_key_path(store.home, "wine").unlink()
    assert restore_key(store, out).dataset == "wine"
    assert read_noise(store, "wine").subkey("test") == before


def test_restore_key_wrong_backup_bad_input(store: Store, tmp_path: Path) -> None:
    read_noise(store, "wine")
    out = tmp_path / "backup.json"
    backup_key(store, find_dataset_key(store, "wine"), out)
    with store.transaction() as db:
        db.execute("update meta.dataset set key_fingerprint = 'other'")
    with pytest.raises(BadInput, match="not the key that earlier releases"):
        restore_key(store, out)
    out.write_text('{"dataset": "wine"}')
    with pytest.raises(BadInput, match="not a key backup"):
        restore_key(store, out)
    with pytest.raises(BadInput, match="has no key here"):
        backup_key(store, find_dataset_key(store, "other"), tmp_path / "other.json")


def test_backup_key_home_key_restored(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "home.json"
    with pytest.raises(BadInput, match="This home has no key here"):
        backup_key(store, find_home_key(store), out)
    pem = export_public_key(store)
    assert not is_backed_up(store, find_home_key(store))
    backup_key(store, find_home_key(store), out)
    assert is_backed_up(store, find_home_key(store))
    assert not is_backed_up(store, find_dataset_key(store, "wine"))
    path = home_key_path(store.home)
    content = path.read_text()
    path.write_text("ab" * 32)
    with pytest.raises(BadInput, match="not the one that its earlier releases"):
        check_key(find_home_key(store))
    assert restore_key(store, out).dataset == NO_DATASET
    assert path.read_text() == content
    assert export_public_key(store) == pem


def test_backup_key_missing_home_key_nothing_written(store: Store, tmp_path: Path) -> None:
    read_noise(store, "wine")
    with store.transaction() as db:
        append_event(db, "wine", "", "note", {})
    home_key_path(store.home).unlink()
    with pytest.raises(BadInput, match="earlier releases of this home"):
        backup_key(store, find_dataset_key(store, "wine"), tmp_path / "wine.json")
    assert list(tmp_path.glob("*.json")) == []


def test_export_public_key_holds_no_secret(store: Store) -> None:
    pem = export_public_key(store)
    secret = home_key_path(store.home).read_text().strip()
    assert b"PUBLIC KEY" in pem and secret.encode() not in pem
    assert export_public_key(store) == pem


@pytest.mark.extended
@pytest.mark.parametrize("name", ["../../x", "home-seal", "/tmp/x", "x\n", "X", "a b", "x" * 41])
def test_key_commands_path_as_dataset_bad_input(store: Store, tmp_path: Path, name: str) -> None:
    """A name could lead out of the folder of keys, or to the key of the home."""
    key = bytes(32)
    backup = tmp_path / "backup.json"
    content = {"dataset": name, "key": key.hex(), "fingerprint": compute_fingerprint(key)}
    backup.write_text(json.dumps(content))
    before = sorted(tmp_path.rglob("*.key"))
    with pytest.raises(BadInput, match="is not the name of a dataset"):
        restore_key(store, backup)
    with pytest.raises(BadInput, match="is not the name of a dataset"):
        find_dataset_key(store, name)
    assert sorted(tmp_path.rglob("*.key")) == before
