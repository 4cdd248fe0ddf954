"""The manifest of a published folder and the digests of its files, read from the disk."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.manifest import NAME, Verified, check_release

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_text(text: str) -> str:
    """Return the SHA-256 digest of the text of a file."""
    return hashlib.sha256(text.encode()).hexdigest()


def verify(path: Path, key: Ed25519PublicKey | None = None) -> Verified:
    """Return the release in a folder, if every byte is as it was published."""
    folder = path.parent if path.name == NAME else path

    def find_digest(name: str) -> str | None:
        return file_digest(folder / name) if (folder / name).is_file() else None

    source = folder / NAME
    raw = source.read_bytes() if source.is_file() else None
    names = set() if raw is None else {entry.name for entry in folder.iterdir()}
    return check_release(folder, raw, names, find_digest, key)
