"""The cluster key, which seals every message to a worker and every reply.

A scheduler and the memory that workers spill to disk hold sealed bytes only. Each worker reads the
key from a file of its own that others cannot read, or from its environment.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ppdm_core.model.errors import BadInput

KEY_VARIABLE = "PPDM_CLUSTER_KEY"  # the key itself, in hexadecimal digits
KEY_FILE_VARIABLE = "PPDM_CLUSTER_KEY_FILE"  # the path of its file
KEY_BYTES = 32
NONCE_BYTES = 12


def seal(key: bytes, data: bytes) -> bytes:
    """Return encrypted and authenticated data."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, None)


def unseal(key: bytes, data: bytes) -> bytes:
    """Return the data of a message; raise BadInput if it was sealed with another key."""
    try:
        return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None)
    except InvalidTag:
        raise BadInput(
            "The client and a worker have different cluster keys.",
            remedy=f"Give every worker the file of the client by {KEY_FILE_VARIABLE}.",
        ) from None


def write_cluster_key(path: Path) -> None:
    """Write a new key to a file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(KEY_BYTES))


def read_cluster_key(path: str = "") -> bytes:
    """Return the key of a file, or that of the environment if no file is named."""
    text, path = os.environ.get(KEY_VARIABLE, ""), path or os.environ.get(KEY_FILE_VARIABLE, "")
    if path:
        text = read_secret_file(Path(path))
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadInput(
            "There is no cluster key of 64 hexadecimal digits.",
            file=path or None,
            remedy=f"Name its file: 'secret' in [engine], {KEY_FILE_VARIABLE} for a worker.",
        )
    return key


def read_secret_file(path: Path) -> str:
    """Return the text of a file; raise BadInput if others than its owner may read it."""
    check_private_file(path)
    return path.read_text(errors="replace").strip()


def check_private_file(path: Path) -> None:
    """Raise BadInput if a file does not exist, or if others than its owner may read it."""
    try:
        mode = path.stat().st_mode
    except OSError:
        raise BadInput(
            f"{path.name} does not exist, or cannot be read.",
            file=str(path),
            remedy="Name the right file in [engine].",
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise BadInput(
            f"Others than its owner may read {path.name}.",
            file=str(path),
            remedy=f"Restrict it: chmod 600 {path}",
        )
