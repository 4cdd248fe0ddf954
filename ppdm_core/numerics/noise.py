"""Keyed noise on a grid: all randomness of a release is a function of the dataset's secret key.

A retry, another engine or a re-release of an unchanged record gives the same bytes; a changed
record or a changed mechanism gets new noise. Per record, keyed BLAKE2 digests the mechanism's
fingerprint, the record's key, and the values that the method consumes; per cell, AES-256 turns
digest and component into 128 bits. There is no float mode: the outputs of a float sampler reveal
their inputs (Mironov 2012), those of a grid do not.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats, Keys
from ppdm_core.model.rows import Block

SCHEME = b"ppdm-noise-1"
LN_SLACK = 2.0**-24  # what rounding may add to ln gamma, per component
Purpose = tuple[bytes | str, ...]  # of a subkey


def frame_parts(*parts: bytes | str) -> bytes:
    """Return the length-prefixed concatenation: different lists of parts give different bytes."""
    raw = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(struct.pack("<Q", len(part)) + part for part in raw)


class Noise:
    """The randomness of one draw of one dataset. Each purpose has its own subkey."""

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError("A dataset key has 32 bytes.")
        self._key = key

    def __repr__(self) -> str:
        return "Noise(<key>)"

    def subkey(self, *purpose: bytes | str) -> bytes:
        """Return the 32-byte key for this purpose."""
        return hashlib.blake2b(
            frame_parts(SCHEME, *purpose), key=self._key, digest_size=32
        ).digest()

    def derive(self, *purpose: bytes | str) -> Noise:
        """Return independent noise for another draw, such as a shadow draw of the audit."""
        return Noise(self.subkey("derive", *purpose))

    def generator(self, *name: bytes | str) -> np.random.Generator:
        """Return a generator for secrets of a complete release: a matrix, a column order."""
        seed = int.from_bytes(self.subkey("generator", *name), "little")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))

    def bits(
        self, block: Block, name: str, columns: int, fingerprint: bytes
    ) -> NDArray[np.uint64]:  # (n, columns, 2)
        """Return 128 pseudo-random bits per record and component."""
        records = np.concatenate([block.key, encode_numbers(block.X)], axis=1)
        digests = self._digests(
            records, self.subkey("digest", name), frame_parts(name, fingerprint)
        )
        cells = np.empty((block.n, columns, 16), dtype=np.uint8)
        cells[:, :, :12] = digests[:, None, :12]
        cells[:, :, 12:] = np.arange(columns, dtype="<u4").view(np.uint8).reshape(columns, 4)
        cipher = Cipher(algorithms.AES(self.subkey("cell", name)), modes.ECB()).encryptor()
        raw = cipher.update(cells.tobytes())
        return np.frombuffer(raw, dtype="<u8").reshape(block.n, columns, 2)

    def response_bits(
        self, key: Keys, place: Codes, name: str, fingerprint: bytes
    ) -> NDArray[np.uint64]:  # (n, 2)
        """Return 128 pseudo-random bits per record for one categorical column.

        Only the record's cell in this column is digested (its place among the sorted categories),
        so that a change of another cell does not resample the response here. ``fingerprint`` must
        name the column.
        """
        own = np.ascontiguousarray(place, dtype="<i4").reshape(-1, 1).view(np.uint8)  # (n, 4)
        records = np.concatenate([key, own], axis=1)
        digests = self._digests(
            records, self.subkey("response", name), frame_parts(name, fingerprint)
        )
        return digests.view("<u8")

    def _digests(self, records: Keys, key: bytes, header: bytes) -> Keys:
        """Return 16 bytes for every row of ``records``."""
        width = records.shape[1]
        start = hashlib.blake2b(header + struct.pack("<Q", width), key=key, digest_size=16)
        data = memoryview(records.tobytes())

        def digest(offset: int) -> bytes:
            state = start.copy()
            state.update(data[offset : offset + width])
            return state.digest()

        joined = b"".join([digest(offset) for offset in range(0, len(data), width)])
        return np.frombuffer(joined, dtype=np.uint8).reshape(-1, 16)

    def make_record_keys(self, ids: Sequence[bytes], *scope: bytes | str) -> list[bytes]:
        """Return 16 bytes per record id, which reveal nothing of the id without the key."""
        start = hashlib.blake2b(key=self.subkey("record", *scope), digest_size=16)

        def one(identity: bytes) -> bytes:
            state = start.copy()
            state.update(identity)
            return state.digest()

        return [one(identity) for identity in ids]

    def name_draws(self, key: Keys, consumed: Keys, fingerprint: bytes) -> Keys:  # (n, 16)
        """Return the name of each record's draw in the ledger.

        Names are equal if everything that determines the noise is equal, and reveal nothing
        without the key.
        """
        records = np.concatenate([key, consumed], axis=1)
        return self._digests(records, self.subkey("ledger"), frame_parts(fingerprint))

    def ranks(self, key: Keys, *name: bytes | str) -> NDArray[np.uint64]:  # (n,)
        """Return a keyed 64-bit number per record that does not depend on its values."""
        cipher = Cipher(algorithms.AES(self.subkey("rank", *name)), modes.ECB()).encryptor()
        raw = cipher.update(np.ascontiguousarray(key).tobytes())
        return np.frombuffer(raw, dtype="<u8").reshape(-1, 2)[:, 0]


def encode_numbers(X: Floats) -> Keys:
    """Return the numbers of each record as bytes, for digests."""
    values = np.ascontiguousarray(X + 0.0, dtype="<f8")  # + 0.0 turns -0.0 into 0.0
    return values.view(np.uint8)
