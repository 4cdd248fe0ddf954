"""Key files: one for each dataset, from which all its noise follows, and one of the home itself.

A dataset whose key is missing or is another one is an error, never a reason for a new key: with a
new key every record would get new noise, and old and new release together would average it away.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import public_pem
from ppdm_core.numerics.noise import Noise
from warehouse.checkpoints import checkpoint
from warehouse.database import Store, fetch_first
from warehouse.home import DATASET_NAME, Home, translate_disk_errors
from warehouse.integrity.events import append_event
from warehouse.integrity.home_key import OWNER, find_home_fingerprint, home_key, home_key_path
from warehouse.integrity.key_files import (
    RESTORE,
    compute_fingerprint,
    read_key,
    write_key,
    wrong_key_error,
)
from warehouse.tables import DATASETS, EVENTS

if TYPE_CHECKING:
    from warehouse.transaction import Transaction

BACKED_UP = "key backed up"  # kind of an event
NO_DATASET = ""  # what backups and events of the home's key hold in place of a dataset's name


@dataclass(frozen=True)
class KeyFile:
    """A key file, and the fingerprint of the key that the history knows."""

    path: Path
    owner: str  # for error messages: "dataset 'wine'"
    dataset: str  # ``NO_DATASET`` for the key of the home
    known: str | None  # fingerprint; None before the first use

    def read(self) -> bytes:
        """Return the key; raise BadInput if the history knows another one."""
        key = read_key(self.path, self.owner)
        if self.known not in (None, compute_fingerprint(key)):
            raise wrong_key_error(self.path, self.owner)
        return key


def find_dataset_key(store: Store, dataset: str) -> KeyFile:
    """Return the key file of a dataset, which need not exist yet."""
    with store.transaction(f"{dataset} key") as db:
        return get_key_file(db, dataset)


def get_key_file(db: Transaction, dataset: str) -> KeyFile:
    """Return the key file of a dataset within a transaction."""
    query = f"select key_fingerprint from {DATASETS} where name = ?"
    row = fetch_first(db, query, [dataset])
    known = row[0] if row else None
    return KeyFile(dataset_key_path(db.home, dataset), f"dataset '{dataset}'", dataset, known)


def find_home_key(store: Store) -> KeyFile:
    """Return the key file of the home, which need not exist yet."""
    with store.transaction("home key") as db:
        known = find_home_fingerprint(db)
    return KeyFile(home_key_path(store.home), OWNER, NO_DATASET, known)


def dataset_key_path(home: Home, dataset: str) -> Path:
    """Return the path of a dataset's key file; raise BadInput if it has no name of a dataset."""
    if not re.fullmatch(DATASET_NAME, dataset):
        raise BadInput(
            f"'{dataset}' is not the name of a dataset.", remedy="See the names: ppdm status"
        )
    return home.keys / f"{dataset}.key"


def dataset_noise(db: Transaction, dataset: str) -> Noise:
    """Return the noise of a dataset; its key is made at first use and then never again."""
    file = get_key_file(db, dataset)
    if file.known is None and not file.path.exists():
        with translate_disk_errors(file.path):
            write_key(file.path, secrets.token_bytes(32))
        checkpoint("key written")
    key = file.read()
    if file.known is None:  # also after a crash that followed the writing of the key
        db.execute(
            f"update {DATASETS} set key_fingerprint = ? where name = ?",
            [compute_fingerprint(key), dataset],
        )
    return Noise(key)


def backup_key(store: Store, file: KeyFile, target: Path) -> str:
    """Write a key to a new file that its owner stores elsewhere; return its fingerprint."""
    if not file.path.exists():
        owner = f"{file.owner[:1].upper()}{file.owner[1:]}"
        raise BadInput(f"{owner} has no key here.", file=str(file.path), remedy=RESTORE)
    if target.exists():
        raise BadInput(
            f"{target.name} exists already.", file=str(target), remedy="Name a file that does not."
        )
    check_key(find_home_key(store))  # it seals the event below
    key = file.read()
    fingerprint = compute_fingerprint(key)
    content = {"dataset": file.dataset, "fingerprint": fingerprint, "key": key.hex()}
    with translate_disk_errors(target):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            json.dump(content, handle)
    with store.transaction(f"{file.dataset} key") as db:
        append_event(db, file.dataset, "", BACKED_UP, {"fingerprint": fingerprint})
    return fingerprint


def is_backed_up(store: Store, file: KeyFile) -> bool:
    """Return whether the key in use was ever backed up; the backup may be lost since."""
    with store.transaction(f"{file.dataset} key") as db:
        row = fetch_first(
            db,
            f"select count(*) from {EVENTS} where dataset = ? and kind = ? "
            "and json_extract_string(detail, '$.fingerprint') = ?",
            [file.dataset, BACKED_UP, file.known],
        )
    return row is not None and row[0] > 0


def check_key(file: KeyFile) -> None:
    """Check that a key that was used exists and is the one that the history knows."""
    if file.known is not None:
        file.read()


def restore_key(store: Store, source: Path) -> KeyFile:
    """Write a backed-up key to its place, if the history knows no other one."""
    dataset, key = read_backup(source)
    file = find_dataset_key(store, dataset) if dataset != NO_DATASET else find_home_key(store)
    if file.known not in (None, compute_fingerprint(key)):
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
    with translate_disk_errors(file.path):
        write_key(file.path, key)
    return file


def read_backup(source: Path) -> tuple[str, bytes]:
    """Return dataset and key of a file that `ppdm key backup` made."""
    try:
        content = json.loads(source.read_text())
        dataset, key = str(content["dataset"]), bytes.fromhex(content["key"])
        is_sound = len(key) == 32 and compute_fingerprint(key) == content["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        is_sound = False
    if not is_sound:
        raise BadInput(
            f"{source.name} is not a key backup.",
            file=str(source),
            remedy="Name a file that `ppdm key backup` made.",
        )
    return dataset, key


def export_public_key(store: Store) -> bytes:
    """Return the key that verifies signatures, as PEM; the home's key is made if there is none."""
    with store.transaction("public key") as db:
        return public_pem(home_key(db).signing().public_key())
