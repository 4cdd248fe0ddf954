"""The home's own key: it seals rows of the warehouse and signs manifests.

Like a dataset's key it is made once. A home that has sealed rows and whose key is missing or is
another one is an error: with a new key, edited rows could not be distinguished from old ones.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from warehouse.checkpoints import checkpoint
from warehouse.home import Home, translate_disk_errors
from warehouse.integrity.key_files import (
    compute_fingerprint,
    read_key,
    write_key,
    wrong_key_error,
)
from warehouse.tables import EVENTS, HOME_KEYS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from warehouse.transaction import Transaction

OWNER = "this home"


@dataclass(frozen=True)
class HomeKey:
    """The secret of a home, from which the keys for seals and for signatures are derived."""

    root: bytes = field(repr=False)

    def derive(self, purpose: bytes) -> bytes:
        """Return a key for one purpose: seals and signatures never share a key."""
        return hashlib.blake2b(key=self.root, person=purpose, digest_size=32).digest()

    @property
    def sealing(self) -> bytes:
        return self.derive(b"ppdm seals")

    def signing(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.derive(b"ppdm manifests"))


def home_key_path(home: Home) -> Path:
    """Return the path of the home's key file."""
    return home.keys / "home-seal.key"  # no dataset's name holds a dash


def find_home_fingerprint(db: Transaction) -> str | None:
    """Return the fingerprint of the key that this warehouse knows, or None before its first use."""
    rows = db.execute(f"select fingerprint from {HOME_KEYS}").fetchall()
    return rows[0][0] if rows else None


def has_events(db: Transaction) -> bool:
    """Return whether the warehouse holds an event; every event is sealed."""
    return bool(db.execute(f"select 1 from {EVENTS} limit 1").fetchall())


def home_key(db: Transaction) -> HomeKey:
    """Return the key that this warehouse knows; make it at first use.

    The caller holds the lock of the warehouse. A transaction reads the key file once.
    """
    if db.home_key is None:
        db.home_key = read_or_make_key(db)
    return db.home_key


def read_or_make_key(db: Transaction) -> HomeKey:
    """Return the key of the file, which must be the one that the warehouse knows."""
    path = home_key_path(db.home)
    known = find_home_fingerprint(db)
    if known is None and has_events(db):
        raise BadInput(
            "The warehouse has sealed rows, and the record of their key is gone.",
            remedy="Restore `private` from a backup.",
        )
    if known is None and not path.exists():
        with translate_disk_errors(path):
            write_key(path, secrets.token_bytes(32))
        checkpoint("home key written")
    key = read_key(path, OWNER)
    if known is None:  # also after a crash that followed the writing of the key
        db.execute(f"insert into {HOME_KEYS} values (?)", [compute_fingerprint(key)])
    elif known != compute_fingerprint(key):
        raise wrong_key_error(path, OWNER)
    return HomeKey(key)
