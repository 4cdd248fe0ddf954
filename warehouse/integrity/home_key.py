"""The home's own key: it seals rows of the warehouse and signs manifests.

Like a dataset's key it is made once. A home that has sealed rows and whose key is missing or is
another one is an error: with a new key nobody could tell an edited row from an old one.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, Defect
from warehouse.checkpoints import checkpoint
from warehouse.home import Home, machine_errors
from warehouse.integrity.key_files import another_key, fingerprint_of, read_key, write_key

if TYPE_CHECKING:
    import duckdb
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

OWNER = "this home"


@dataclass(frozen=True)
class HomeKey:
    root: bytes = field(repr=False)

    def derived(self, purpose: bytes) -> bytes:
        """Seals and signatures never share a key, though one file holds both."""
        return hashlib.blake2b(key=self.root, person=purpose, digest_size=32).digest()

    @property
    def sealing(self) -> bytes:
        return self.derived(b"ppdm seals")

    def signing(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.derived(b"ppdm manifests"))


def home_of(db: duckdb.DuckDBPyConnection) -> Home:
    """The home whose warehouse this connection has open."""
    ((path,),) = db.execute(
        "select path from duckdb_databases() where database_name = current_database()"
    ).fetchall()
    if path is None:
        raise Defect("Rows of a database in memory cannot be sealed.")
    return Home(Path(path).parent.parent)


def key_path(home: Home) -> Path:
    return home.keys / "home-seal.key"  # no dataset's name holds a dash


def recorded_fingerprint(db: duckdb.DuckDBPyConnection) -> str | None:
    rows = db.execute("select fingerprint from meta.home_key").fetchall()
    return rows[0][0] if rows else None


def has_seals(db: duckdb.DuckDBPyConnection) -> bool:
    return bool(db.execute("select 1 from meta.event where mac is not null limit 1").fetchall())


def home_key(db: duckdb.DuckDBPyConnection) -> HomeKey:
    """The key that this warehouse knows; made at first use, under the warehouse's lock."""
    path = key_path(home_of(db))
    known = recorded_fingerprint(db)
    if known is None and has_seals(db):
        raise BadInput(
            "The warehouse has sealed rows, and the record of their key is gone.",
            remedy="Restore `private` from a backup.",
        )
    if known is None and not path.exists():
        with machine_errors(path):
            write_key(path, secrets.token_bytes(32))
        checkpoint("home key written")
    key = read_key(path, OWNER)
    if known is None:  # a crash after the key was written ends here, too
        db.execute("insert into meta.home_key values (?)", [fingerprint_of(key)])
    elif known != fingerprint_of(key):
        raise another_key(path, OWNER)
    return HomeKey(key)
