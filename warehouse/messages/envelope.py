"""One message as a file: canonical JSON, encrypted to its receiver and signed by its sender.

    header      version, dataset, session, roll, kind, sender, receiver, number, transcript
    body        the payload as canonical JSON, encrypted
    signature   Ed25519 over header and body

Encryption is that of RFC 9180 with X25519, HKDF-SHA256 and AES-256-GCM. The sender makes a new
X25519 key for every message; it is the beginning of the body, so that the signature covers it.
Decryption needs the same header. The transcript is a digest of all earlier messages between both,
so that no message fits another place.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ppdm_core.model.errors import BadInput, PpdmError
from ppdm_core.model.manifest import canonical_json
from warehouse.messages.payloads import KINDS, Payload, decode_bytes, encode_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

VERSION = 1
SCHEME = b"ppdm message 1\n"
MAX_MESSAGE_BYTES = 2**30
DO_NOT_USE = "Do not use it; ask its sender, by another way than the shared folder, what was sent."
PUT_AGAIN = (
    "Ask its sender, by another way than the shared folder, what was sent. Remove the file, let "
    "the sender run its command again, and then run this command again: both continue."
)


@dataclass(frozen=True)
class Header:
    """What a message is bound to."""

    version: int
    dataset: str
    session: str
    roll: str  # digest of the signed roll
    kind: str
    sender: str
    receiver: str
    number: int  # of earlier messages between sender and receiver
    transcript: str  # digest of these messages


@dataclass(frozen=True)
class Message:
    """A message that was accepted."""

    kind: str
    payload: Payload


class StrayFile(PpdmError):
    """A file in the shared folder that no pinned party signed for its place.

    Everybody who can write there can have put it, so that it ends no release.
    """

    kind = "bad_input"
    exit_code = 2


class OtherKind(BadInput):
    """A party sent a message of another kind than the one that comes next."""


def refuse_stray(name: str, what: str, remedy: str = PUT_AGAIN) -> StrayFile:
    """Return the error of a file that the party that it names need not have put there."""
    return StrayFile(f"The message {name} {what}.", file=name, remedy=remedy)


def refuse(name: str, what: str, remedy: str = DO_NOT_USE) -> BadInput:
    """Return the error of a message that must not be used."""
    return BadInput(f"The message {name} {what}.", file=name, remedy=remedy)


def seal_message(
    header: Header, payload: Payload, key: Ed25519PrivateKey, receiver: X25519PublicKey
) -> bytes:
    """Return a message as the bytes of a file."""
    text = canonical_json(payload.model_dump(mode="json")).encode()
    body = encode_bytes(make_suite().encrypt(text, receiver, info=bind(header)))
    signature = key.sign(signed_text(header, body)).hex()
    return encode_message(header, body, signature)


def open_message(
    name: str,
    raw: bytes,
    expected: Header,
    kinds: tuple[str, ...],
    sender: Ed25519PublicKey,
    key: X25519PrivateKey,
) -> Message:
    """Return an accepted message; raise BadInput if it is not exactly the expected one.

    ``expected`` is the header that it must have, whatever its kind; ``kinds`` may come here. Raise
    StrayFile if it is none that its sender signed for this place.
    """
    from cryptography.exceptions import InvalidSignature, InvalidTag

    header, body, signature = parse_message(name, raw)
    check_place(name, header, expected)
    try:
        sender.verify(bytes.fromhex(signature), signed_text(header, body))
    except (InvalidSignature, ValueError):
        raise refuse_stray(name, f"was changed, or '{header.sender}' did not sign it") from None
    if header.kind not in kinds:
        what = f"is a '{header.kind}', and a {format_kinds(kinds)} comes next"
        raise OtherKind(f"The message {name} {what}.", file=name, remedy=DO_NOT_USE)
    if header.transcript != expected.transcript:
        raise refuse(name, "follows other messages than those that were exchanged")
    try:
        text = make_suite().decrypt(decode_bytes(body), key, info=bind(header))
    except (InvalidTag, ValueError):
        raise refuse(name, f"is not encrypted to '{header.receiver}'") from None
    return Message(header.kind, parse_payload(name, header.kind, text))


def check_place(name: str, header: Header, expected: Header) -> None:
    """Raise StrayFile for the first field that does not belong to this place."""
    if header.version != expected.version:
        raise refuse_stray(
            name,
            f"has version {header.version}; this program reads version {expected.version}",
            "Install the same version of ppdm at the centre and at all sites.",
        )
    if header.dataset != expected.dataset:
        raise refuse_stray(name, f"is of dataset '{header.dataset}', not of '{expected.dataset}'")
    if header.receiver != expected.receiver:
        raise refuse_stray(name, f"is for '{header.receiver}', not for '{expected.receiver}'")
    if header.sender != expected.sender:
        raise refuse_stray(name, f"is from '{header.sender}', not from '{expected.sender}'")
    if header.session != expected.session:
        raise refuse_stray(name, f"is of release {header.session}, not of {expected.session}")
    if header.roll != expected.roll:
        raise refuse_stray(name, "is bound to another roll of sites")
    if header.number != expected.number:
        what = f"is number {header.number}, and number {expected.number} comes next"
        raise refuse_stray(name, what)


def format_kinds(kinds: tuple[str, ...]) -> str:
    """Return the kinds that may come, as words."""
    return " or ".join(f"'{kind}'" for kind in kinds)


def parse_message(name: str, raw: bytes) -> tuple[Header, str, str]:
    """Return header, body and signature of a file in canonical form; refuse any other file."""
    try:
        found: dict[str, Any] = json.loads(raw)
        header = Header(**found["header"])
        body, signature = str(found["body"]), str(found["signature"])
        is_sound = encode_message(header, body, signature) == raw
        is_sound = is_sound and all(
            type(value) is type_of
            for value, type_of in zip(
                asdict(header).values(), (int, *[str] * 6, int, str), strict=True
            )
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        is_sound = False
    if not is_sound:
        raise refuse_stray(name, "was changed: it does not have the form of a message")
    return header, body, signature


def parse_payload(name: str, kind: str, text: bytes) -> Payload:
    """Return the payload of a kind; refuse other fields or types."""
    try:
        return KINDS[kind].payload.model_validate_json(text)
    except ValidationError:
        raise refuse(name, f"does not hold what a '{kind}' holds") from None


def encode_message(header: Header, body: str, signature: str) -> bytes:
    """Return the only bytes of a message."""
    fields = {"header": asdict(header), "body": body, "signature": signature}
    return f"{canonical_json(fields)}\n".encode()


def bind(header: Header) -> bytes:
    """Return the header as the encryption is bound to it."""
    return SCHEME + canonical_json(asdict(header)).encode()


def signed_text(header: Header, body: str) -> bytes:
    """Return what the sender signs."""
    return bind(header) + b"\n" + body.encode()


def make_suite() -> Any:
    """Return the encryption of all messages."""
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
