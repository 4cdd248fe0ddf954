"""The only source of release secrets: one key file per dataset, and one of the home itself.

A dataset whose key is missing or is another one is an error, never a reason for a new key: with a
new key every record would get new noise, and old and new release together would average it away.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.noise import Noise
from warehouse.checkpoints import checkpoint
from warehouse.database import Store, first, tell
from warehouse.home import Home, machine_errors
from warehouse.integrity import home_key
from warehouse.integrity.key_files import RESTORE, another_key, fingerprint_of, read_key, write_key
from warehouse.publishing.manifest import public_pem

HOME = ""  # in place of a dataset's name: the key that seals and signs for the whole home
BACKED_UP = "key backed up"  # kind of an event


@dataclass(frozen=True)
class KeyFile:
    dataset: str
    path: Path
    known: str | None  # fingerprint of the key that the history knows

    @property
    def owner(self) -> str:
        return f"dataset '{self.dataset}'" if self.dataset else home_key.OWNER

    def read(self) -> bytes:
        """The key, if it is the one that the history knows."""
        key = read_key(self.path, self.owner)
        if self.known not in (None, fingerprint_of(key)):
            raise another_key(self.path, self.owner)
        return key


def key_file(store: Store, dataset: str = HOME) -> KeyFile:
    with store.transaction(f"{dataset} key") as db:
        if dataset == HOME:
            known = home_key.recorded_fingerprint(db)
        else:
            row = first(db, "select key_fingerprint from meta.dataset where name = ?", [dataset])
            known = row[0] if row else None
    return KeyFile(dataset, key_path(store.home, dataset), known)


def key_path(home: Home, dataset: str) -> Path:
    return home.keys / f"{dataset}.key" if dataset else home_key.key_path(home)


def dataset_noise(store: Store, dataset: str) -> Noise:
    """The dataset's noise; its key is made at first use and then never again."""
    file = key_file(store, dataset)
    if file.known is None and not file.path.exists():
        with machine_errors(file.path):
            write_key(file.path, secrets.token_bytes(32))
        checkpoint("key written")
    key = file.read()
    if file.known is None:
        with store.transaction(f"{dataset} key") as db:
            db.execute(
                "update meta.dataset set key_fingerprint = ? where name = ?",
                [fingerprint_of(key), dataset],
            )
        checkpoint("key recorded")
    return Noise(key)


def backup_key(store: Store, dataset: str, target: Path) -> str:
    file = key_file(store, dataset)
    if not file.path.exists():
        owner = f"{file.owner[:1].upper()}{file.owner[1:]}"
        raise BadInput(f"{owner} has no key here.", file=str(file.path), remedy=RESTORE)
    if target.exists():
        raise BadInput(
            f"{target.name} exists already.", file=str(target), remedy="Name a file that does not."
        )
    check_key(store, HOME)  # it seals the event below
    key = file.read()
    content = {"dataset": dataset, "fingerprint": fingerprint_of(key), "key": key.hex()}
    with machine_errors(target):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            json.dump(content, handle)
    with store.transaction(f"{dataset} key") as db:
        tell(db, dataset, "", BACKED_UP, {"fingerprint": fingerprint_of(key)})
    return fingerprint_of(key)


def is_backed_up(store: Store, dataset: str) -> bool:
    """Whether the key that the releases use was ever handed out; not whether that file lives."""
    known = key_file(store, dataset).known
    with store.transaction(f"{dataset} key") as db:
        row = first(
            db,
            "select count(*) from meta.event where dataset = ? and kind = ? "
            "and json_extract_string(detail, '$.fingerprint') = ?",
            [dataset, BACKED_UP, known],
        )
    return row is not None and row[0] > 0


def check_key(store: Store, dataset: str) -> None:
    """The key must be there and the one that the history knows."""
    file = key_file(store, dataset)
    if file.known is not None:
        file.read()


def restore_key(store: Store, source: Path) -> str:
    """Puts a backed-up key in place, if it is the one that the history knows."""
    dataset, key = read_backup(source)
    file = key_file(store, dataset)
    if file.known not in (None, fingerprint_of(key)):
        raise BadInput(
            f"This is not the key that earlier releases of {file.owner} used.",
            file=str(source),
            remedy="Look for the right backup.",
        )
    if file.known is None and file.path.exists() and file.read() != key:
        raise BadInput(
            f"There is another key of {file.owner} already.",
            file=str(file.path),
            remedy="Move that key away first, if it was never used.",
        )
    with machine_errors(file.path):
        write_key(file.path, key)
    return dataset


def read_backup(source: Path) -> tuple[str, bytes]:
    try:
        content = json.loads(source.read_text())
        dataset, key = str(content["dataset"]), bytes.fromhex(content["key"])
        sound = len(key) == 32 and fingerprint_of(key) == content["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise BadInput(
            f"{source.name} is not a key backup.",
            file=str(source),
            remedy="Name a file that `ppdm key backup` made.",
        )
    return dataset, key


def public_key(store: Store) -> bytes:
    """What recipients check signatures with, as PEM; the key is made if there is none yet."""
    with store.transaction("public key") as db:
        return public_pem(home_key.home_key(db).signing().public_key())
