"""Objects of a bucket: how they are created, read and compared, in little memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import MachineTrouble

if TYPE_CHECKING:
    from obstore.store import S3Store

PIECE_BYTES = 2**20  # read at a time
PART_BYTES = 8 * 2**20  # of a large object, written at a time
PARTS_AT_ONCE = 2


def create_object(store: S3Store, name: str, content: bytes) -> None:
    """Create an object; one that an earlier attempt wrote must be the same."""
    import obstore
    from obstore.exceptions import AlreadyExistsError

    try:
        obstore.put(store, name, content, mode="create", use_multipart=False)
    except AlreadyExistsError:
        if digest_object(store, name) != hashlib.sha256(content).hexdigest():
            raise MachineTrouble(
                f"The object {name.rpartition('/')[2]} of this version exists already with other "
                "content.",
                remedy="Find out who wrote it, remove it, and try again.",
            ) from None


def upload_file(store: S3Store, name: str, path: Path) -> None:
    """Write a file to an object that does not exist.

    A large one is written in parts, and appears with the last. Stores cannot check then that there
    is none.
    """
    import obstore

    if path.stat().st_size <= PART_BYTES:
        create_object(store, name, path.read_bytes())
    else:
        obstore.put(store, name, path, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)


def read_if_there(store: S3Store, name: str) -> bytes | None:
    """Return the content of an object, if there is one."""
    import obstore

    try:
        return bytes(obstore.get(store, name).bytes())
    except FileNotFoundError:
        return None


def digest_object(store: S3Store, name: str) -> str:
    """Return the SHA-256 digest of an object."""
    import obstore

    digest = hashlib.sha256()
    for piece in obstore.get(store, name).stream(min_chunk_size=PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
