"""Statements that people sign with their own keys: canonical JSON under a scheme, Ed25519.

    ppdm reviewer 1   a key is enrolled in a home, or removed from it
    ppdm author 1     a release is made
    ppdm decision 1   a release in review is approved or rejected
    ppdm site verdict 1   a site attacked the pool of a common release

The scheme is the first line of what is signed, so that no statement can be taken for one of another
kind, for a manifest or for a notice. Every statement names the home that it is made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ppdm_core.model.manifest import alteration_error, canonical_json, hash_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

REVIEWER = b"ppdm reviewer 1\n"
AUTHOR = b"ppdm author 1\n"
DECISION = b"ppdm decision 1\n"
SITE_VERDICT = b"ppdm site verdict 1\n"


@dataclass(frozen=True)
class Signature:
    """A signature with the public key that checks it."""

    public: str  # 32 bytes, as hexadecimal digits
    ed25519: str

    @property
    def key(self) -> str:
        """The fingerprint of the public key."""
        return compute_fingerprint(self.public)


def compute_fingerprint(public: str) -> str:
    """Return the fingerprint of a public key in hexadecimal digits; "" for any other text."""
    try:
        return hash_public_key(bytes.fromhex(public))
    except ValueError:
        return ""


def sign_statement(scheme: bytes, body: Mapping[str, Any], key: Ed25519PrivateKey) -> Signature:
    """Return the signature of a statement."""
    text = scheme + canonical_json(dict(body)).encode()
    return Signature(key.public_key().public_bytes_raw().hex(), key.sign(text).hex())


def is_signed(scheme: bytes, body: Mapping[str, Any], signature: Signature) -> bool:
    """Return whether a signature is one of this statement by its public key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public))
        text = scheme + canonical_json(dict(body)).encode()
        key.verify(bytes.fromhex(signature.ed25519), text)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


@dataclass(frozen=True)
class SignedApproval:
    """An approval in a manifest that a reviewer signed."""

    by: str
    key: str  # fingerprint


def check_approvals(source: PurePath, manifest: Mapping[str, Any]) -> list[SignedApproval]:
    """Return the signed approvals of a manifest; refuse one that is not about this release.

    Each carries its public key, so that this shows which keys approved these bytes under this
    policy and code. Whose keys they are is not in the manifest.
    """
    try:
        found = [dict(one) for one in manifest.get("approvals") or ()]
        return [check_approval(manifest, one) for one in found if "signed" in one]
    except (KeyError, TypeError, ValueError):
        raise alteration_error(source, "has an approval that its reviewer did not sign") from None


def check_approval(manifest: Mapping[str, Any], approval: Mapping[str, Any]) -> SignedApproval:
    """Return one signed approval; raise ValueError if it is not of this release."""
    found = approval["signed"]
    body, signature = found["statement"], Signature(found["public"], found["ed25519"])
    expected = {
        "choice": "approve",
        "release_id": manifest["release_id"],
        "data": manifest["files"]["data.parquet"]["sha256"],
        "policy": manifest["verdict"]["policy_digest"],
        "code": manifest["code_version"],
        "by": approval["by"],
        "key": signature.key,
    }
    if any(body[name] != value for name, value in expected.items()):
        raise ValueError("another release")
    if not is_signed(DECISION, body, signature):
        raise ValueError("another signature")
    return SignedApproval(approval["by"], signature.key)


def check_site_verdicts(source: PurePath, manifest: Mapping[str, Any]) -> None:
    """Refuse a pool with a verdict that is not about these bytes or that its site did not sign.

    Whose keys they are is not in the manifest.
    """
    sites = manifest.get("sites")
    if sites is None:
        return
    try:
        verdicts = [dict(each) for each in sites["verdicts"]]
        keys = {check_site_verdict(manifest, each) for each in verdicts}
        is_complete = len(keys) == len(verdicts) == sites["count"] > 0
    except (KeyError, TypeError, ValueError):
        is_complete = False
    if not is_complete:
        raise alteration_error(source, "has a verdict that its site did not sign for this pool")


def check_site_verdict(manifest: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    """Return the public key of a site's verdict; raise ValueError if it is not of this pool."""
    found = verdict["signed"]
    body, signature = found["statement"], Signature(found["public"], found["ed25519"])
    expected = {
        "dataset": manifest["dataset"],
        "roll": manifest["sites"]["roll"],
        "manifest": verdict["manifest"],
        "pool": manifest["files"]["data.parquet"]["sha256"],
        "outcome": verdict["outcome"],
    }
    if any(body[name] != value for name, value in expected.items()):
        raise ValueError("another pool")
    if not is_signed(SITE_VERDICT, body, signature):
        raise ValueError("another signature")
    return signature.public
