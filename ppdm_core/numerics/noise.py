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

from ppdm_core.model.arrays import Codes, Floats, Ints, Keys
from ppdm_core.model.rows import Block
from ppdm_core.numerics.distributions import LAPLACE, TAIL, DrawnLaw

SCHEME = b"ppdm-noise-1"
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
        records = np.concatenate([block.key, as_bytes(block.X)], axis=1)
        digests = self._digests(records, self.subkey("digest", name), framed(name, fingerprint))
        cells = np.empty((block.n, columns, 16), dtype=np.uint8)
        cells[:, :, :12] = digests[:, None, :12]
        cells[:, :, 12:] = np.arange(columns, dtype="<u4").view(np.uint8).reshape(columns, 4)
        cipher = Cipher(algorithms.AES(self.subkey("cell", name)), modes.ECB()).encryptor()
        raw = cipher.update(cells.tobytes())
        return np.frombuffer(raw, dtype="<u8").reshape(block.n, columns, 2)

    def response_bits(
        self, key: Keys, place: Codes, name: str, fingerprint: bytes
    ) -> NDArray[np.uint64]:  # (n, 2)
        """128 pseudo-random bits per record for one categorical column.

        Of the record nothing but its cell in this column is digested (its place among the sorted
        categories), so that a change elsewhere draws no second answer here. ``fingerprint`` must
        name the column.
        """
        own = np.ascontiguousarray(place, dtype="<i4").reshape(-1, 1).view(np.uint8)  # (n, 4)
        records = np.concatenate([key, own], axis=1)
        digests = self._digests(records, self.subkey("response", name), framed(name, fingerprint))
        return digests.view("<u8")

    def _digests(self, records: Keys, key: bytes, header: bytes) -> Keys:
        """16 bytes for every row of ``records``."""
        width = records.shape[1]
        start = hashlib.blake2b(header + struct.pack("<Q", width), key=key, digest_size=16)
        data = memoryview(records.tobytes())

        def digest(offset: int) -> bytes:
            state = start.copy()
            state.update(data[offset : offset + width])
            return state.digest()

        joined = b"".join([digest(offset) for offset in range(0, len(data), width)])
        return np.frombuffer(joined, dtype=np.uint8).reshape(-1, 16)

    def record_keys(self, ids: Sequence[bytes], *scope: bytes | str) -> list[bytes]:
        """16 bytes that say who a record is, and nothing of its id to anybody without the key."""
        start = hashlib.blake2b(key=self.subkey("record", *scope), digest_size=16)

        def one(identity: bytes) -> bytes:
            state = start.copy()
            state.update(identity)
            return state.digest()

        return [one(identity) for identity in ids]

    def draw_names(self, key: Keys, consumed: Keys, fingerprint: bytes) -> Keys:  # (n, 16)
        """What stands for each record's draw in the ledger: equal when all that decides the noise
        is equal, and telling nothing to anybody without the key."""
        records = np.concatenate([key, consumed], axis=1)
        return self._digests(records, self.subkey("ledger"), framed(fingerprint))

    def ranks(self, key: Keys, name: str) -> NDArray[np.uint64]:  # (n,)
        """A keyed 64-bit number per record that does not depend on its values."""
        cipher = Cipher(algorithms.AES(self.subkey("rank", name)), modes.ECB()).encryptor()
        raw = cipher.update(np.ascontiguousarray(key).tobytes())
        return np.frombuffer(raw, dtype="<u8").reshape(-1, 2)[:, 0]


def as_bytes(X: Floats) -> Keys:
    """The numbers of each record, for digests."""
    values = np.ascontiguousarray(X + 0.0, dtype="<f8")  # + 0.0 turns -0.0 into 0.0
    return values.view(np.uint8)


def grid_step(scale: float) -> float:
    """The largest power of two that is at most ``scale / 1000``."""
    return math.ldexp(1.0, math.frexp(scale / GRID_SHARE)[1] - 1)


def two_sided_geometric(bits: NDArray[np.uint64], ln_q: Floats) -> Ints:
    """G with P(G = k) = (1-q)/(1+q) q^|k| per cell; ``bits`` (n, s, 2), ``ln_q`` (s,)."""
    U = uniform(bits)
    q = np.exp(ln_q)
    tail = (np.log(U) + np.log1p(np.expm1(ln_q) / 2)) / ln_q  # > m iff |G| >= m
    magnitude = np.maximum(1.0, np.floor(tail))
    magnitude[np.broadcast_to(2 * q / (1 + q), U.shape) <= U] = 0.0
    return signed(magnitude.astype(np.int64), bits)


def uniform(bits: NDArray[np.uint64]) -> Floats:
    """U = (k + 1/2) / 2^127 of all bits but the sign; (n, s, 2) to (n, s)."""
    high = (bits[..., 0] & np.uint64(2**63 - 1)).astype(np.float64)
    low = bits[..., 1].astype(np.float64)
    U: Floats = high * 2.0**-63 + (low + 0.5) * 2.0**-127
    return U


def signed(magnitude: Ints, bits: NDArray[np.uint64]) -> Ints:
    G: Ints = np.where(bits[..., 0] >> np.uint64(63), -1, 1) * magnitude
    return G


def cut_points(law: DrawnLaw, ratio: float) -> Floats:
    """P(|G| >= m) for m from the farthest step of the law down to 1, so that they ascend."""
    last = math.ceil(law.tail / ratio)
    return law.at_least(np.arange(last, 0, -1, dtype=np.float64), ratio)


class GridNoise:
    """Noise of one law on the grid ``g``: ``g (round(T/g) + G)``, clamped.

    Laplace noise is two-sided geometric. Any other law is rounded to the grid: |G| is the number
    of its cut points P(|G| >= m) above U.

    Of a bounded law, every score in ``ranges`` (s, 2), widened to the grid, reaches every output,
    and ln gamma over a distance of m steps is at most ``law.ln_gamma(m g / b)``: an output is a
    cell of the line, at the clamps a half-line, its probability from either score is an integral
    of f over that cell, moved by m g, and a quotient of two integrals is at most the largest
    quotient of what they integrate. For the geometric law it is exp(m g / b) term by term.
    Finite arithmetic adds at most ``LN_SLACK``: every probability is exact to 2^-25.
    """

    def __init__(self, law: DrawnLaw, b: Floats, g: Floats, ranges: Floats) -> None:
        self.law, self.b, self.g, self.ranges = law, b, g, ranges
        ratios = (g / b).tolist()
        tables = {} if law == LAPLACE else {r: cut_points(law, r) for r in set(ratios)}
        self._cuts = [tables[ratio] for ratio in ratios if tables]  # up to 1 MB a scale

    @property
    def limits(self) -> Floats:
        """(s, 2) outputs in grid steps. Laws without a bound have no range in common."""
        if self.law.is_bounded:
            return reach(self.ranges, self.b, self.g)
        low, high = grid_ranges(self.ranges, self.g).T
        tail = np.ceil(self.law.tail * self.b / self.g)
        return np.stack([low - tail, high + tail], axis=1)

    @property
    def atom(self) -> float:
        """The largest probability of any single output, at the mode or at a clamp."""
        farthest = grid_ranges(self.ranges, self.g)[:, 1]
        nearest = self.limits[:, 1] - farthest  # steps from a score to its nearer clamp
        return max(
            _atom(self.law, steps, ratio)
            for steps, ratio in zip(nearest.tolist(), (self.g / self.b).tolist(), strict=True)
        )

    def add(self, T: Floats, bits: NDArray[np.uint64]) -> Floats:
        low, high = grid_ranges(self.ranges, self.g).T  # (s,) each, in grid steps
        steps = np.clip(np.rint(T / self.g), low, high).astype(np.int64)
        steps += self.draw(bits)
        bottom, top = self.limits.T
        Z: Floats = np.clip(steps, bottom, top) * self.g
        return Z + 0.0

    def draw(self, bits: NDArray[np.uint64]) -> Ints:
        """G for each cell, before the clamp."""
        if self.law == LAPLACE:
            return two_sided_geometric(bits, -self.g / self.b)
        U = uniform(bits)
        magnitude = np.empty(U.shape, dtype=np.int64)
        for i, cuts in enumerate(self._cuts):
            magnitude[:, i] = len(cuts) - cuts.searchsorted(U[:, i], side="right")
        return signed(magnitude, bits)


def _atom(law: DrawnLaw, nearest: float, ratio: float) -> float:
    """Of a score with its nearer clamp so many steps above it, or below if negative."""
    steps = nearest if nearest >= 1 else 1 - nearest
    mode, clamp = law.at_least(np.array([1.0, steps]), ratio).tolist()
    beyond = clamp / 2 if nearest >= 1 else 1 - clamp / 2
    return max(1 - float(mode), float(beyond))


def on_grid(T: Floats, bits: NDArray[np.uint64], b: Floats, g: Floats, ranges: Floats) -> Floats:
    """Laplace noise of scale ``b`` on the grid ``g``."""
    return GridNoise(LAPLACE, b, g, ranges).add(T, bits)


def grid_ranges(ranges: Floats, g: Floats) -> Floats:
    """Bounds in grid steps, widened outward, so that gamma = exp(R/b) needs no correction."""
    return np.stack([np.floor(ranges[:, 0] / g), np.ceil(ranges[:, 1] / g)], axis=1)


def reach(ranges: Floats, b: Floats, g: Floats) -> Floats:
    """The common range of outputs in grid steps: [U - 60 b, L + 60 b]."""
    low, high = grid_ranges(ranges, g).T
    tail = np.floor(TAIL * b / g)
    return np.stack([high - tail, low + tail], axis=1)
