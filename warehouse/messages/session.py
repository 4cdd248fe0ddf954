"""One party's side of the exchange of one release.

Every message that was sent or accepted is stored in the private folder of the party, in the order
of the conversation with each other party. A message is stored before it is put into the shared
folder, and after it was checked. So a party that was killed runs the same steps again: what is
stored is not sent with another content, and not accepted a second time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.manifest import canonical_json
from warehouse.checkpoints import checkpoint
from warehouse.home import translate_disk_errors
from warehouse.integrity.key_files import write_atomically
from warehouse.messages.envelope import (
    VERSION,
    Header,
    Message,
    open_message,
    parse_message,
    seal_message,
)
from warehouse.messages.payloads import Payload
from warehouse.messages.roll import Roll
from warehouse.messages.shared_folder import SharedFolder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

START = hashlib.sha256(b"ppdm transcript 1").hexdigest()


class Session:
    """The conversations of one party with all others, in one release."""

    def __init__(
        self,
        folder: Path,
        shared: SharedFolder,
        roll: Roll,
        name: str,
        signing: Ed25519PrivateKey,
        exchange: X25519PrivateKey,
    ) -> None:
        self.folder, self.shared, self.roll, self.name = folder, shared, roll, name
        self.signing, self.exchange = signing, exchange
        self.position: dict[str, int] = {}  # in the conversation with each party

    def __repr__(self) -> str:
        return f"Session({self.name})"

    def send(self, receiver: str, kind: str, make: Callable[[], Payload]) -> None:
        """Send the next message, or put the stored one into the shared folder again.

        ``make`` is called only if the message was not made before.
        """
        raw = self._read(receiver)
        if raw is None:
            header = self._expect(self.name, receiver, kind)
            key = self.roll.find(receiver).encryption_key()
            raw = seal_message(header, make(), self.signing, key)
            self._store(receiver, raw)
            checkpoint("message stored")
        self.shared.check_begun()
        self.shared.put(self._name_file(self.name, receiver), raw)
        checkpoint("message sent")
        self._advance(receiver)

    def receive(self, sender: str, *kinds: str) -> Message | None:
        """Return the next message, which must be of one of the kinds; None if it is not there.

        A message that is not exactly the next one raises BadInput and is not stored.
        """
        self.shared.check_begun()
        name = self._name_file(sender, self.name)
        stored = self._read(sender)
        raw = self.shared.find(name) if stored is None else stored
        if raw is None:
            return None
        expected = self._expect(sender, self.name, kinds[0])
        found = open_message(
            name, raw, expected, kinds, self.roll.find(sender).verifier(), self.exchange
        )
        if stored is None:
            self._store(sender, raw)
            checkpoint("message accepted")
        self._advance(sender)
        return found

    def has_next(self, party: str) -> bool:
        """Return whether the next message with a party is stored already."""
        return self._read(party) is not None

    def has_sent(self) -> bool:
        """Return whether this party has sent any message of this release."""
        return any(header.sender == self.name for header in list_headers(self.folder))

    def share_secret(self, other: str) -> bytes:
        """Return the secret that this party shares with another one, and with no third."""
        shared = self.exchange.exchange(self.roll.find(other).encryption_key())
        return self._derive(shared, "secret", *sorted((self.name, other)))

    def derive_key(self, purpose: str) -> bytes:
        """Return a key of this party alone, the same in every process of the session."""
        return self._derive(self.exchange.private_bytes_raw(), purpose, self.name)

    def _derive(self, secret: bytes, *purpose: str) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        info = canonical_json(["ppdm key 1", self.roll.digest, *purpose]).encode()
        return HKDF(SHA256(), length=32, salt=None, info=info).derive(secret)

    def _expect(self, sender: str, receiver: str, kind: str) -> Header:
        other = receiver if sender == self.name else sender
        return Header(
            VERSION,
            self.roll.dataset,
            self.roll.session,
            self.roll.digest,
            kind,
            sender,
            receiver,
            self.position.get(other, 0),
            self._digest_transcript(other),
        )

    def _digest_transcript(self, other: str) -> str:
        """Return the digest of all messages with a party before the next one."""
        digest = START
        for number in range(self.position.get(other, 0)):
            raw = self._path(other, number).read_bytes()
            digest = hashlib.sha256(digest.encode() + hashlib.sha256(raw).digest()).hexdigest()
        return digest

    def _path(self, other: str, number: int) -> Path:
        return self.folder / "messages" / other / f"{number:03d}.msg"

    def _name_file(self, sender: str, receiver: str) -> str:
        other = receiver if sender == self.name else sender
        return f"{self.position.get(other, 0):03d}-{sender}-{receiver}.msg"

    def _read(self, other: str) -> bytes | None:
        path = self._path(other, self.position.get(other, 0))
        return path.read_bytes() if path.exists() else None

    def _store(self, other: str, raw: bytes) -> None:
        path = self._path(other, self.position.get(other, 0))
        with translate_disk_errors(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(path, raw.decode())

    def _advance(self, other: str) -> None:
        self.position[other] = self.position.get(other, 0) + 1


def list_headers(folder: Path) -> list[Header]:
    """Return the headers of all messages of a session that were sent or accepted."""
    paths = sorted(folder.glob("messages/*/*.msg"))
    return [parse_message(path.name, path.read_bytes())[0] for path in paths]
