"""The only source of release secrets: one key file per dataset.

A dataset whose key is missing or is another one is an error, never a reason for a new key: with a
new key every record would get new noise, and old and new release together would average it away.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path

from ppdm_core.errors import BadInput
from ppdm_core.noise import Noise
from warehouse.checkpoints import checkpoint
from warehouse.home import Home, sync
from warehouse.store import Store, first, machine_errors, tell

BACKED_UP = "key backed up"  # kind of an event
RESTORE = "Restore it with: ppdm key restore FILE (made earlier by: ppdm key backup)."


def fingerprint_of(key: bytes) -> str:
    return hashlib.blake2b(b"ppdm key fingerprint", key=key, digest_size=8).hexdigest()


def dataset_noise(store: Store, dataset: str) -> Noise:
    """The dataset's noise; its key is made at first use and then never again."""
    path = key_path(store.home, dataset)
    known = recorded_fingerprint(store, dataset)
    if known is None and not path.exists():
        with machine_errors(path):
            write_key(path, secrets.token_bytes(32))
        checkpoint("key written")
    key = read_key(path, dataset)
    if known is None:
        with store.transaction(f"{dataset} key") as db:
            db.execute(
                "update meta.dataset set key_fingerprint = ? where name = ?",
                [fingerprint_of(key), dataset],
            )
        checkpoint("key recorded")
    elif known != fingerprint_of(key):
        raise another_key(dataset, path)
    return Noise(key)


def key_path(home: Home, dataset: str) -> Path:
    return home.keys / f"{dataset}.key"


def recorded_fingerprint(store: Store, dataset: str) -> str | None:
    with store.transaction(f"{dataset} key") as db:
        row = first(db, "select key_fingerprint from meta.dataset where name = ?", [dataset])
    return row[0] if row else None


def read_key(path: Path, dataset: str) -> bytes:
    try:
        key = bytes.fromhex(path.read_text().strip())
    except FileNotFoundError:
        raise BadInput(
            f"Dataset '{dataset}' has earlier releases, but its key is missing.",
            file=str(path),
            remedy=RESTORE,
        ) from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise BadInput(
            f"The key file of dataset '{dataset}' is damaged.", file=str(path), remedy=RESTORE
        )
    return key


def write_key(path: Path, key: bytes) -> None:
    """All or nothing: a torn key would lock the dataset for ever."""
    for leftover in path.parent.glob(f"{path.stem}.*.tmp"):  # of a killed process
        leftover.unlink(missing_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync(path.parent)


def backup_key(store: Store, dataset: str, target: Path) -> str:
    path = key_path(store.home, dataset)
    if not path.exists():
        raise BadInput(f"Dataset '{dataset}' has no key here.", file=str(path), remedy=RESTORE)
    if target.exists():
        raise BadInput(
            f"{target.name} exists already.", file=str(target), remedy="Name a file that does not."
        )
    key = read_key(path, dataset)
    content = {"dataset": dataset, "fingerprint": fingerprint_of(key), "key": key.hex()}
    with machine_errors(target):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file)
    with store.transaction(f"{dataset} key") as db:
        tell(db, dataset, "", BACKED_UP, {"fingerprint": fingerprint_of(key)})
    return fingerprint_of(key)


def is_backed_up(store: Store, dataset: str) -> bool:
    """Whether the key that the releases use was ever handed out; not whether that file lives."""
    with store.transaction(f"{dataset} key") as db:
        row = first(
            db,
            "select count(*) from meta.event e join meta.dataset d on d.name = e.dataset "
            "where e.dataset = ? and e.kind = ? "
            "and json_extract_string(e.detail, '$.fingerprint') = d.key_fingerprint",
            [dataset, BACKED_UP],
        )
    return row is not None and row[0] > 0


def check_key(store: Store, dataset: str) -> None:
    """The key must be there and the one that the dataset's history knows."""
    known = recorded_fingerprint(store, dataset)
    if known is None:
        return
    path = key_path(store.home, dataset)
    if known != fingerprint_of(read_key(path, dataset)):
        raise another_key(dataset, path)


def another_key(dataset: str, path: Path) -> BadInput:
    return BadInput(
        f"The key of dataset '{dataset}' is not the one that its earlier releases used.",
        file=str(path),
        remedy=RESTORE,
    )


def restore_key(store: Store, source: Path) -> str:
    """Puts a backed-up key in place, if it is the one that the dataset's history knows."""
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
    known = recorded_fingerprint(store, dataset)
    path = key_path(store.home, dataset)
    if known is not None and known != fingerprint_of(key):
        raise BadInput(
            f"This is not the key that earlier releases of '{dataset}' used.",
            file=str(source),
            remedy="Look for the right backup.",
        )
    if known is None and path.exists() and read_key(path, dataset) != key:
        raise BadInput(
            f"Dataset '{dataset}' already has another key.",
            file=str(path),
            remedy="Move that key away first, if it was never used.",
        )
    with machine_errors(path):
        write_key(path, key)
    return dataset
