"""Key files: one secret of 32 bytes each, for its owner alone, written all or nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ppdm_core.model.errors import BadInput
from warehouse.home import file_mode, sync

RESTORE = "Restore it with: ppdm key restore FILE (made earlier by: ppdm key backup)."


def fingerprint_of(key: bytes) -> str:
    return hashlib.blake2b(b"ppdm key fingerprint", key=key, digest_size=8).hexdigest()


def read_key(path: Path, owner: str) -> bytes:
    """``owner`` is what the key belongs to, in the words of an error: "dataset 'wine'"."""
    try:
        key = bytes.fromhex(path.read_text().strip())
    except FileNotFoundError:
        raise BadInput(
            f"There are earlier releases of {owner}, but its key is missing.",
            file=str(path),
            remedy=RESTORE,
        ) from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise BadInput(f"The key file of {owner} is damaged.", file=str(path), remedy=RESTORE)
    return key


def another_key(path: Path, owner: str) -> BadInput:
    return BadInput(
        f"The key of {owner} is not the one that its earlier releases used.",
        file=str(path),
        remedy=RESTORE,
    )


def write_key(path: Path, key: bytes) -> None:
    """A torn key would lock its owner out for ever."""
    write_whole(path, key.hex() + "\n")


def write_whole(path: Path, text: str) -> None:
    """All or nothing, and readable by the owner alone, or by the group that shares the folder."""
    for leftover in path.parent.glob(f"{path.stem}.*.tmp"):  # of a killed process
        leftover.unlink(missing_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, file_mode(path.parent))
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync(path.parent)
