"""Read the folder of a released version and the steward's public key; needs nothing private."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.manifest import NAME, Verified, check_release, parse_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify_folder(path: Path, key: Ed25519PublicKey | None = None) -> Verified:
    """Return the release in a folder, if every byte is as it was published."""
    folder = path.parent if path.name == NAME else path

    def find_digest(name: str) -> str | None:
        if not (folder / name).is_file():
            return None
        with (folder / name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    source = folder / NAME
    raw = source.read_bytes() if source.is_file() else None
    names = set() if raw is None else {entry.name for entry in folder.iterdir()}
    return check_release(folder, raw, names, find_digest, key)


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Return the public key in a PEM file."""
    try:
        pem = path.read_bytes()
    except OSError:
        pem = b""  # reported as every other file that holds no key
    return parse_public_key(path, pem)
