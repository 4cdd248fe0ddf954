"""Key files of a team, in the folder of a release and enrolled in its home."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from ppdm_core.model.manifest import public_pem
from tests.support.contexts import create_home
from tests.support.signed_homes import KEYS, NAMES, get_public
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.reviewers import add_reviewer

PASSPHRASE = "qzxcanary passphrase"


def name_key(release: Small, name: str) -> str:
    """Return the private key file of a person."""
    return str(release.folder / f"{name}.pem")


def write_keys(folder: Path) -> None:
    """Write the keys of all persons, as `ppdm reviewer key` does."""
    protection = BestAvailableEncryption(PASSPHRASE.encode())
    for name in NAMES:
        path, key = folder / f"{name}.pem", KEYS[name]
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))
        path.chmod(0o600)
        path.with_suffix(".pub").write_bytes(public_pem(key.public_key()))


def enrol_team(release: Small) -> None:
    """Enrol the first key, Sam, who makes releases, the reviewer Rita, and a puppet of Sam."""
    write_keys(release.folder)
    with Store(create_home(release.home)).transaction("tests") as db:
        add_reviewer(db, "first", get_public("first"), None)
        add_reviewer(db, "sam", get_public("sam"), KEYS["first"])
        add_reviewer(db, "rita", get_public("rita"), KEYS["first"])
        add_reviewer(db, "puppet", get_public("puppet"), KEYS["sam"])
    release.env |= {"PPDM_KEY": name_key(release, "sam"), "PPDM_KEY_PASSPHRASE": PASSPHRASE}
