"""Keyed noise on a grid: all randomness of a release, as a function of the dataset's secret key.

A retry, another engine or a re-release of an unchanged record gives the same bytes; a changed
record or a changed mechanism gets fresh noise. Per record, keyed BLAKE2 digests the mechanism's
fingerprint, who the record is, and the values that the method consumes; per cell, AES-256 turns
digest and component into 128 bits. There is no float mode: the outputs of a float sampler betray
their inputs (Mironov 2012), those of a grid do not.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ppdm_core.types import Block, Floats, Ints, Keys

SCHEME = b"ppdm-noise-1"
TAIL = 60  # outputs are clamped to this many scales beyond the far bound
GRID_SHARE = 1000  # grid steps per noise scale, at least
LN_SLACK = 2.0**-24  # what finite arithmetic may add to ln gamma, per component


def framed(*parts: bytes | str) -> bytes:
    """Length-prefixed concatenation: no two lists of parts share their bytes."""
    raw = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(struct.pack("<Q", len(part)) + part for part in raw)


class Noise:
    """The randomness of one draw of one dataset. Purposes have separate subkeys."""

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError("A dataset key has 32 bytes.")
        self._key = key

    def __repr__(self) -> str:
        return "Noise(<key>)"

    def subkey(self, *purpose: bytes | str) -> bytes:
        return hashlib.blake2b(framed(SCHEME, *purpose), key=self._key, digest_size=32).digest()

    def derive(self, *purpose: bytes | str) -> Noise:
        """Independent noise for another draw, such as a shadow of the audit."""
        return Noise(self.subkey("derive", *purpose))

    def generator(self, *name: bytes | str) -> np.random.Generator:
        """For secrets of a whole release: a matrix, a column order."""
        seed = int.from_bytes(self.subkey("generator", *name), "little")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))

    def bits(
        self, block: Block, name: str, columns: int, fingerprint: bytes
    ) -> NDArray[np.uint64]:  # (n, columns, 2)
        """128 pseudo-random bits per record and component."""
        digests = self._digests(block, name, fingerprint)  # (n, 16)
        cells = np.empty((block.n, columns, 16), dtype=np.uint8)
        cells[:, :, :12] = digests[:, None, :12]
        cells[:, :, 12:] = np.arange(columns, dtype="<u4").view(np.uint8).reshape(columns, 4)
        cipher = Cipher(algorithms.AES(self.subkey("cell", name)), modes.ECB()).encryptor()
        raw = cipher.update(cells.tobytes())
        return np.frombuffer(raw, dtype="<u8").reshape(block.n, columns, 2)

    def _digests(self, block: Block, name: str, fingerprint: bytes) -> Keys:
        values = np.ascontiguousarray(block.X + 0.0, dtype="<f8")  # + 0.0 turns -0.0 into 0.0
        records = np.concatenate([block.key, values.view(np.uint8)], axis=1)
        width = records.shape[1]
        start = hashlib.blake2b(
            framed(name, fingerprint) + struct.pack("<Q", width),
            key=self.subkey("digest", name),
            digest_size=16,
        )
        data = memoryview(records.tobytes())

        def digest(offset: int) -> bytes:
            state = start.copy()
            state.update(data[offset : offset + width])
            return state.digest()

        joined = b"".join([digest(offset) for offset in range(0, len(data), width)])
        return np.frombuffer(joined, dtype=np.uint8).reshape(block.n, 16)

    def record_keys(self, ids: Sequence[bytes], *scope: bytes | str) -> list[bytes]:
        """16 bytes that say who a record is, and nothing of its id to anybody without the key."""
        start = hashlib.blake2b(key=self.subkey("record", *scope), digest_size=16)

        def one(identity: bytes) -> bytes:
            state = start.copy()
            state.update(identity)
            return state.digest()

        return [one(identity) for identity in ids]

    def ranks(self, key: Keys, name: str) -> NDArray[np.uint64]:  # (n,)
        """A keyed 64-bit number per record that does not depend on its values."""
        cipher = Cipher(algorithms.AES(self.subkey("rank", name)), modes.ECB()).encryptor()
        raw = cipher.update(np.ascontiguousarray(key).tobytes())
        return np.frombuffer(raw, dtype="<u8").reshape(-1, 2)[:, 0]


def grid_step(scale: float) -> float:
    """The largest power of two that is at most ``scale / 1000``."""
    return math.ldexp(1.0, math.frexp(scale / GRID_SHARE)[1] - 1)


def two_sided_geometric(bits: NDArray[np.uint64], ln_q: Floats) -> Ints:
    """G with P(G = k) = (1-q)/(1+q) q^|k| per cell; ``bits`` (n, s, 2), ``ln_q`` (s,)."""
    high = (bits[..., 0] & np.uint64(2**63 - 1)).astype(np.float64)
    low = bits[..., 1].astype(np.float64)
    U = high * 2.0**-63 + (low + 0.5) * 2.0**-127  # (k + 1/2) / 2^127
    q = np.exp(ln_q)
    tail = (np.log(U) + np.log1p(np.expm1(ln_q) / 2)) / ln_q  # > m iff |G| >= m
    magnitude = np.maximum(1.0, np.floor(tail))
    magnitude[np.broadcast_to(2 * q / (1 + q), U.shape) <= U] = 0.0
    sign = np.where(bits[..., 0] >> np.uint64(63), -1, 1)
    G: Ints = sign * magnitude.astype(np.int64)
    return G


def on_grid(T: Floats, bits: NDArray[np.uint64], b: Floats, g: Floats, ranges: Floats) -> Floats:
    """Laplace noise of scale ``b`` on the grid ``g``: ``g (round(T/g) + G)``, clamped so that every
    score in ``ranges`` (s, 2), widened to the grid, reaches every output."""
    low, high = grid_ranges(ranges, g).T  # (s,) each, in grid steps
    steps = np.clip(np.rint(T / g), low, high).astype(np.int64)
    steps += two_sided_geometric(bits, -g / b)
    bottom, top = reach(ranges, b, g).T
    Z: Floats = np.clip(steps, bottom, top) * g
    return Z + 0.0


def grid_ranges(ranges: Floats, g: Floats) -> Floats:
    """Bounds in grid steps, widened outward, so that gamma = exp(R/b) needs no correction."""
    return np.stack([np.floor(ranges[:, 0] / g), np.ceil(ranges[:, 1] / g)], axis=1)


def reach(ranges: Floats, b: Floats, g: Floats) -> Floats:
    """The common range of outputs in grid steps: [U - 60 b, L + 60 b]."""
    low, high = grid_ranges(ranges, g).T
    tail = np.floor(TAIL * b / g)
    return np.stack([high - tail, low + tail], axis=1)
