"""The notice that takes the place of a withdrawn version: canonical JSON, signed as manifests are.

    release_id   the version that was withdrawn
    withdrawn    when, in UTC
    reason       why, in one line
    manifest     SHA-256 of the manifest that the version had

The signature covers another scheme than that of manifests: neither can be taken for the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import Refused
from ppdm_core.model.manifest import alteration_error, check_signature, parse_manifest, sign

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

NOTICE_NAME = "withdrawn.json"
SCHEME = b"ppdm withdrawal 1\n"
FIELDS = {"release_id": str, "withdrawn": str, "reason": str, "manifest": str}


@dataclass(frozen=True)
class Notice:
    """A notice of withdrawal as it was read."""

    body: Mapping[str, Any]
    signer: str | None  # fingerprint of the key that the notice names; None: it is unsigned
    is_checked: bool  # the signature is by the key that was given

    @property
    def release_id(self) -> str:
        return str(self.body["release_id"])

    @property
    def sentence(self) -> str:
        """What happened, when and why."""
        words = describe_withdrawal(self.body["withdrawn"], self.body["reason"])
        return f"{self.release_id} {words}"

    def as_error(self, folder: PurePath) -> Refused:
        """Return the error of a person who wants to use the version."""
        return Refused(
            self.sentence,
            file=str(folder),
            remedy="Do not use copies of it; ask the steward for another version.",
        )


def describe_withdrawal(at: str, reason: str) -> str:
    """Return when and why a version was withdrawn, to follow its name."""
    return f'was withdrawn on {at[:10]} ("{reason}").'


def sign_notice(body: Mapping[str, str], key: Ed25519PrivateKey) -> bytes:
    """Return the bytes of a signed notice; the same body and key give the same bytes."""
    return sign(body, key, SCHEME)


def check_notice(
    folder: PurePath, raw: bytes, names: Collection[str], key: Ed25519PublicKey | None = None
) -> Notice:
    """Return the notice in a folder; refuse a changed one, and files beside it.

    ``raw`` are the bytes of the notice, and ``names`` all entries of the folder.
    """
    source = folder / NOTICE_NAME
    body = parse_manifest(source, raw, FIELDS)
    if key is not None:
        check_signature(source, body, key, SCHEME)
    for name in sorted(set(names) - {NOTICE_NAME}):
        raise alteration_error(folder / name, "lies beside a notice of withdrawal")
    return Notice(body, body.get("signature", {}).get("key"), key is not None)
