"""Key files: one secret of 32 bytes each, readable by its owner alone, written all or nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ppdm_core.model.errors import BadInput
from warehouse.home import file_mode, sync

RESTORE = "Restore it with: ppdm key restore FILE (made earlier by: ppdm key backup)."


def compute_fingerprint(key: bytes) -> str:
    """Return a short text that identifies a key and reveals nothing of it."""
    return hashlib.blake2b(b"ppdm key fingerprint", key=key, digest_size=8).hexdigest()


def read_key(path: Path, owner: str) -> bytes:
    """Return the key in a file; ``owner`` names what it belongs to: "dataset 'wine'"."""
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


def wrong_key_error(path: Path, owner: str) -> BadInput:
    """Return the error of a key file that holds another key than the one in use."""
    return BadInput(
        f"The key of {owner} is not the one that its earlier releases used.",
        file=str(path),
        remedy=RESTORE,
    )


def write_key(path: Path, key: bytes) -> None:
    """Write a key file, all or nothing: half a key would lock its owner out for ever."""
    write_atomically(path, key.hex() + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Write a file all or nothing, readable by its owner or by the group of a shared folder."""
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
