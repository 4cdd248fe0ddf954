"""The manifest of a release: canonical JSON, signed, whose last field is the digest of the rest.

    body        what recipients need to know, with the digest of every file
    signature   Ed25519 over the canonical bytes of the body
    digest      SHA-256 over the canonical bytes of both

There is one way to write a manifest: bytes that are not in canonical form are refused, so that no
two different files have the same content.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput, Refused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    from ppdm_core.model.statement import SignedApproval

NAME = "manifest.json"
SCHEME = b"ppdm manifest 1\n"  # a signature of anything else is none of a manifest
FIELDS = {"release_id": str, "rows": int, "files": dict}
STEWARD_KEY = "Name the file that the steward made with: ppdm key public --out FILE"
SIGNATURE = {"ed25519": "[0-9a-f]{128}", "key": "[0-9a-f]{32}"}


@dataclass(frozen=True)
class Verified:
    """A folder whose files match its manifest."""

    manifest: dict[str, Any]
    signer: str | None  # fingerprint of the key that the manifest names; None: it is unsigned
    is_checked: bool  # the signature is by the key that was given
    approvals: tuple[SignedApproval, ...] = ()  # each signature is by the key that it names


def canonical_json(value: Any) -> str:
    """Return the only JSON text of a value that is used for digests and MACs."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def sign(body: Mapping[str, Any], key: Ed25519PrivateKey, scheme: bytes = SCHEME) -> bytes:
    """Return the bytes of a signed manifest, or of another signed file if a scheme is given."""
    text = scheme + canonical_json(dict(body)).encode()
    signature = {
        "ed25519": key.sign(text).hex(),
        "key": key_fingerprint(key.public_key()),
    }
    return seal({**body, "signature": signature})


def seal(body: Mapping[str, Any]) -> bytes:
    """Return canonical bytes whose last field is the digest of the rest."""
    text = canonical_json(dict(body))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{text[:-1]},"digest":"{digest}"}}\n'.encode()


def check_release(
    folder: PurePath,
    raw: bytes | None,
    names: Collection[str],
    find_digest: Callable[[str], str | None],
    key: Ed25519PublicKey | None = None,
) -> Verified:
    """Return the release in a folder, if every byte is as it was published.

    ``raw`` are the bytes of its manifest, None if there is none, and ``names`` all entries of the
    folder. ``find_digest`` returns the SHA-256 digest of an entry, None if it is not a file.
    Without the steward's key that says only that the folder is complete and consistent, which any
    person can achieve.
    """
    if raw is None:
        raise BadInput(
            f"There is no {NAME} in {folder}.",
            file=str(folder),
            remedy="Name the folder of one released version.",
        )
    manifest = parse_manifest(folder / NAME, raw)
    if key is not None:
        check_signature(folder / NAME, manifest, key)
    described = manifest["files"]
    for name in sorted({NAME, *described, *names}):
        if name not in names:
            raise alteration_error(folder / name, "is missing")
        if name == NAME:
            continue
        if name not in described:
            raise alteration_error(folder / name, "is not part of the release")
        digest, entry = find_digest(name), described[name]
        if digest is None or not isinstance(entry, dict) or digest != entry.get("sha256"):
            raise alteration_error(folder / name, "was changed after the release")
    from ppdm_core.model.statement import check_approvals, check_site_verdicts  # need this module

    check_site_verdicts(folder / NAME, manifest)
    approvals = tuple(check_approvals(folder / NAME, manifest))
    signer = manifest.get("signature", {}).get("key")
    return Verified(manifest, signer, key is not None, approvals)


def parse_manifest(
    source: PurePath, raw: bytes, fields: Mapping[str, type] = FIELDS
) -> dict[str, Any]:
    """Return the content of a signed file; refuse one whose digest, form or fields are wrong."""
    try:
        manifest: dict[str, Any] = json.loads(raw)
        body = {name: value for name, value in manifest.items() if name != "digest"}
        is_sound = seal(body) == raw and has_form(manifest, fields)
    except (ValueError, AttributeError, TypeError, RecursionError):
        is_sound = False
    if not is_sound:
        raise alteration_error(source, "was changed after the release")
    return manifest


def has_form(manifest: Mapping[str, Any], fields: Mapping[str, type]) -> bool:
    """Return whether a manifest has the required fields."""
    if not all(isinstance(manifest.get(name), kind) for name, kind in fields.items()):
        return False
    if "signature" not in manifest:
        return True
    signature = manifest["signature"]
    return set(signature) == set(SIGNATURE) and all(
        re.fullmatch(form, signature[name]) for name, form in SIGNATURE.items()
    )


def check_signature(
    source: PurePath,
    manifest: Mapping[str, Any],
    key: Ed25519PublicKey,
    scheme: bytes = SCHEME,
) -> None:
    """Check that a manifest, or a file of another scheme, is signed with the key of the steward."""
    from cryptography.exceptions import InvalidSignature

    body = {name: manifest[name] for name in manifest if name not in ("digest", "signature")}
    signature = manifest.get("signature")
    if signature is None:
        raise alteration_error(source, "is not signed, so nothing says who made it")
    if signature["key"] != key_fingerprint(key):
        raise alteration_error(source, f"was signed with another key ({signature['key']})")
    try:
        text = scheme + canonical_json(body).encode()
        key.verify(bytes.fromhex(signature["ed25519"]), text)
    except InvalidSignature:
        raise alteration_error(source, "has a signature that is not of this key") from None


def key_fingerprint(key: Ed25519PublicKey) -> str:
    """Return a text that identifies a public key, short enough to compare by telephone."""
    return hash_public_key(key.public_bytes_raw())


def hash_public_key(public: bytes) -> str:
    """Return the fingerprint of a public key, given by its bytes."""
    return hashlib.sha256(public).hexdigest()[:32]


def public_pem(key: Ed25519PublicKey) -> bytes:
    """Return a public key as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def parse_public_key(source: PurePath, pem: bytes, remedy: str = STEWARD_KEY) -> Ed25519PublicKey:
    """Return the public key in the bytes of a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInput(
            f"{source.name} is not a public key.",
            file=str(source),
            remedy=remedy,
        )
    return key


def alteration_error(path: PurePath, what: str) -> Refused:
    """Return the error of a file that is not as it was published."""
    return Refused(
        f"{path.name} {what}.",
        file=str(path),
        remedy="Do not use this copy; ask the steward for a new one.",
    )
