"""The private key files with which authors and reviewers sign: PKCS8, protected by a passphrase.

A key file and its passphrase come from the command line, a terminal or the environment. No release
file and no parameter of a flow can name one. The passphrase is removed from the environment as soon
as it was used, so that no child process inherits it.
"""

from __future__ import annotations

import os
import stat
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from warehouse.database import Store
from warehouse.home import Home, translate_disk_errors
from warehouse.reviewers import read_reviewers
from warehouse.signatures import check_author_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_VARIABLE, PASSPHRASE_VARIABLE = "PPDM_KEY", "PPDM_KEY_PASSPHRASE"
MAX_FILE_BYTES = 65_536
MAX_PASSPHRASE_BYTES = 1023  # of the library
MAKE_KEY = "Make a key with: ppdm reviewer key FILE"
# The key that the command of this process read; a flow in a process of its own reads the variables.
AUTHOR_KEY: ContextVar[Ed25519PrivateKey | None] = ContextVar("author key", default=None)


def load_author_key(home: Path, given: Path | None = None, passphrase: str | None = None) -> None:
    """Read the key with which this process signs releases of a home, unless it did already."""
    if AUTHOR_KEY.get() is None:
        AUTHOR_KEY.set(find_author_key(home, given, passphrase))
    os.environ.pop(PASSPHRASE_VARIABLE, None)


def find_author_key(
    home: Path, given: Path | None = None, passphrase: str | None = None
) -> Ed25519PrivateKey | None:
    """Return the key that signs releases of a home; raise BadInput if it may not, or is missing.

    Without a given file, ``PPDM_KEY`` names it. A home without reviewers' keys needs none.
    """
    variable = os.environ.get(KEY_VARIABLE)
    path = given or (Path(variable) if variable and has_reviewers(home) else None)
    key = None if path is None else read_private_key(path, passphrase)
    if Home(home).database.exists():
        with Store(Home(home)).transaction("release") as db:
            check_author_key(db, key)
    return key


def has_reviewers(home: Path) -> bool:
    """Return whether a reviewer's key is enrolled in a home."""
    if not Home(home).database.exists():
        return False
    with Store(Home(home)).transaction("reviewers") as db:
        return bool(read_reviewers(db))


def read_private_key(path: Path, passphrase: str | None = None) -> Ed25519PrivateKey:
    """Return the key in a file; without a passphrase that of the environment is used."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem = read_key_file(path)
    try:
        load_pem_private_key(pem, None)
    except TypeError:  # it is encrypted
        pass
    except (ValueError, UnsupportedAlgorithm):
        raise no_key_error(path) from None
    else:
        raise BadInput(
            f"The key in {path.name} has no passphrase.", file=str(path), remedy=MAKE_KEY
        )
    passphrase = passphrase or os.environ.get(PASSPHRASE_VARIABLE)
    if not passphrase:
        raise BadInput(
            f"The key in {path.name} needs its passphrase.",
            file=str(path),
            remedy=f"Enter it in a terminal, or set {PASSPHRASE_VARIABLE}.",
        )
    try:
        key = load_pem_private_key(pem, os.fsencode(passphrase))
    except (ValueError, UnsupportedAlgorithm):
        raise BadInput(
            f"The passphrase is not that of the key in {path.name}.",
            file=str(path),
            remedy="Try again with the right one.",
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise no_key_error(path)
    return key


def read_key_file(path: Path) -> bytes:
    """Return the bytes of a private key file, which no other user may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not block
    except OSError:
        raise no_key_error(path) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise no_key_error(path)
        if mode & 0o077:
            raise BadInput(
                f"Other users can use the key in {path.name}: it has mode {mode & 0o777:o}.",
                file=str(path),
                remedy=f"Run: chmod 600 {path}",
            )
        return os.read(descriptor, MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def no_key_error(path: Path) -> BadInput:
    """Return the error of a file that holds no private key."""
    return BadInput(
        f"{path.name} is not a private key for signatures.", file=str(path), remedy=MAKE_KEY
    )


def write_key_pair(private: Path, public: Path, passphrase: str) -> str:
    """Write a new key and its public part to new files; return the fingerprint."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    from ppdm_core.model.manifest import key_fingerprint, public_pem

    if not 0 < len(os.fsencode(passphrase)) <= MAX_PASSPHRASE_BYTES:
        raise BadInput(
            f"A key needs a passphrase, of at most {MAX_PASSPHRASE_BYTES} bytes.",
            remedy=f"Enter one in a terminal, or set {PASSPHRASE_VARIABLE}.",
        )
    key = Ed25519PrivateKey.generate()
    protection = BestAvailableEncryption(os.fsencode(passphrase))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)
    for path, content, mode in (
        (private, pem, 0o600),
        (public, public_pem(key.public_key()), 0o644),
    ):
        with translate_disk_errors(path.parent):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
    return key_fingerprint(key.public_key())
