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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput, Refused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

NAME = "manifest.json"
SCHEME = b"ppdm manifest 1\n"  # a signature of anything else is none of a manifest
FIELDS = {"release_id": str, "rows": int, "files": dict}
SIGNATURE = {"ed25519": "[0-9a-f]{128}", "key": "[0-9a-f]{32}"}


@dataclass(frozen=True)
class Verified:
    """A folder whose files match its manifest."""

    manifest: dict[str, Any]
    signer: str | None  # fingerprint of the key that the manifest names; None: it is unsigned
    is_checked: bool  # the signature is by the key that was given


def canonical_json(value: Any) -> str:
    """Return the only JSON text of a value that is used for digests and MACs."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def sign(body: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """Return the bytes of a signed manifest."""
    text = SCHEME + canonical_json(dict(body)).encode()
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


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, key: Ed25519PublicKey | None = None) -> Verified:
    """Return the release in this folder, if every byte is as it was published.

    Without the steward's key that says only that the folder is complete and consistent, which any
    person can achieve.
    """
    folder = path.parent if path.name == NAME else path
    source = folder / NAME
    if not source.is_file():
        raise BadInput(
            f"There is no {NAME} in {folder}.",
            file=str(folder),
            remedy="Name the folder of one released version.",
        )
    manifest = read_manifest(source)
    if key is not None:
        check_signature(source, manifest, key)
    expected = {NAME, *manifest["files"]}
    present = {entry.name for entry in folder.iterdir()}
    for name in sorted(expected | present):
        if name not in present:
            raise alteration_error(folder / name, "is missing")
        if name not in expected:
            raise alteration_error(folder / name, "is not part of the release")
        if name != NAME and not is_described(folder / name, manifest["files"][name]):
            raise alteration_error(folder / name, "was changed after the release")
    return Verified(manifest, manifest.get("signature", {}).get("key"), key is not None)


def is_described(path: Path, entry: Any) -> bool:
    """Return whether a file has the digest that the manifest gives."""
    return path.is_file() and isinstance(entry, dict) and file_digest(path) == entry.get("sha256")


def read_manifest(source: Path) -> dict[str, Any]:
    """Return the content of a manifest; refuse one whose digest or form is wrong."""
    raw = source.read_bytes()
    try:
        manifest: dict[str, Any] = json.loads(raw)
        body = {name: value for name, value in manifest.items() if name != "digest"}
        is_sound = seal(body) == raw and has_form(manifest)
    except (ValueError, AttributeError, TypeError, RecursionError):
        is_sound = False
    if not is_sound:
        raise alteration_error(source, "was changed after the release")
    return manifest


def has_form(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest has the required fields."""
    if not all(isinstance(manifest.get(name), kind) for name, kind in FIELDS.items()):
        return False
    if "signature" not in manifest:
        return True
    signature = manifest["signature"]
    return set(signature) == set(SIGNATURE) and all(
        re.fullmatch(form, signature[name]) for name, form in SIGNATURE.items()
    )


def check_signature(source: Path, manifest: Mapping[str, Any], key: Ed25519PublicKey) -> None:
    """Check that a manifest is signed with the key of the steward."""
    from cryptography.exceptions import InvalidSignature

    body = {name: manifest[name] for name in manifest if name not in ("digest", "signature")}
    signature = manifest.get("signature")
    if signature is None:
        raise alteration_error(source, "is not signed, so nothing says who made it")
    if signature["key"] != key_fingerprint(key):
        raise alteration_error(source, f"was signed with another key ({signature['key']})")
    try:
        text = SCHEME + canonical_json(body).encode()
        key.verify(bytes.fromhex(signature["ed25519"]), text)
    except InvalidSignature:
        raise alteration_error(source, "has a signature that is not of this key") from None


def key_fingerprint(key: Ed25519PublicKey) -> str:
    """Return a text that identifies a public key, short enough to compare by telephone."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:32]


def public_pem(key: Ed25519PublicKey) -> bytes:
    """Return a public key as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Return the public key in a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInput(
            f"{path.name} is not a public key of a home.",
            file=str(path),
            remedy="Name the file that the steward made with: ppdm key public --out FILE",
        )
    return key


def alteration_error(path: Path, what: str) -> Refused:
    """Return the error of a file that is not as it was published."""
    return Refused(
        f"{path.name} {what}.",
        file=str(path),
        remedy="Do not use this copy; ask the steward for a new one.",
    )
