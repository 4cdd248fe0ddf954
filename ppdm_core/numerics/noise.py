"""Keyed noise on a grid: all randomness of a release is a function of the dataset's secret key.

A retry, another engine or a re-release of an unchanged record gives the same bytes; a changed
record or a changed mechanism gets new noise. Per record, keyed BLAKE2 digests the mechanism's
fingerprint, the record's key, and the values that the method consumes; per cell, AES-256 turns
digest and component into 128 bits. There is no float mode: the outputs of a float sampler reveal
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
from ppdm_core.numerics.noise_distributions import CLAMP_SCALES, LAPLACE, SampledDistribution

SCHEME = b"ppdm-noise-1"
GRID_SHARE = 1000  # least number of grid steps per noise scale
LN_SLACK = 2.0**-24  # what rounding may add to ln gamma, per component


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

    def ranks(self, key: Keys, name: str) -> NDArray[np.uint64]:  # (n,)
        """Return a keyed 64-bit number per record that does not depend on its values."""
        cipher = Cipher(algorithms.AES(self.subkey("rank", name)), modes.ECB()).encryptor()
        raw = cipher.update(np.ascontiguousarray(key).tobytes())
        return np.frombuffer(raw, dtype="<u8").reshape(-1, 2)[:, 0]


def encode_numbers(X: Floats) -> Keys:
    """Return the numbers of each record as bytes, for digests."""
    values = np.ascontiguousarray(X + 0.0, dtype="<f8")  # + 0.0 turns -0.0 into 0.0
    return values.view(np.uint8)


def grid_step(scale: float) -> float:
    """Return the largest power of two that is at most ``scale / 1000``."""
    return math.ldexp(1.0, math.frexp(scale / GRID_SHARE)[1] - 1)


def two_sided_geometric(bits: NDArray[np.uint64], ln_q: Floats) -> Ints:
    """Draw G with P(G = k) = (1-q)/(1+q) q^|k| per cell; ``bits`` (n, s, 2), ``ln_q`` (s,)."""
    U = to_uniform(bits)
    q = np.exp(ln_q)
    tail = (np.log(U) + np.log1p(np.expm1(ln_q) / 2)) / ln_q  # > m iff |G| >= m
    magnitude = np.maximum(1.0, np.floor(tail))
    magnitude[np.broadcast_to(2 * q / (1 + q), U.shape) <= U] = 0.0
    return apply_signs(magnitude.astype(np.int64), bits)


def to_uniform(bits: NDArray[np.uint64]) -> Floats:
    """Return U = (k + 1/2) / 2^127 of all bits except the sign; (n, s, 2) to (n, s)."""
    high = (bits[..., 0] & np.uint64(2**63 - 1)).astype(np.float64)
    low = bits[..., 1].astype(np.float64)
    U: Floats = high * 2.0**-63 + (low + 0.5) * 2.0**-127
    return U


def apply_signs(magnitude: Ints, bits: NDArray[np.uint64]) -> Ints:
    """Return the magnitudes with the sign bits applied."""
    G: Ints = np.where(bits[..., 0] >> np.uint64(63), -1, 1) * magnitude
    return G


def compute_cut_points(distribution: SampledDistribution, ratio: float) -> Floats:
    """Return P(|G| >= m) for m from the farthest step down to 1, so that they ascend."""
    last = math.ceil(distribution.max_scales / ratio)
    return distribution.grid_tail_probability(np.arange(last, 0, -1, dtype=np.float64), ratio)


class GridNoise:
    """Noise of one distribution on the grid ``g``: ``g (round(T/g) + G)``, clamped.

    Laplace noise is two-sided geometric. Any other distribution is rounded to the grid: |G| is the
    number of its cut points P(|G| >= m) above U.

    With a bounded distribution, every score in ``ranges`` (s, 2), widened to the grid, reaches
    every output, and ln gamma over a distance of m steps is at most
    ``distribution.ln_gamma(m g / b)``: an output is a cell of the line, at the clamps a half-line;
    its probability from either score is an integral of f over that cell, moved by m g; and a
    quotient of two integrals is at most the largest quotient of the integrands. For the geometric
    distribution it is exp(m g / b) term by term. Rounding adds at most ``LN_SLACK``: every
    probability is exact to 2^-25.
    """

    def __init__(
        self, distribution: SampledDistribution, b: Floats, g: Floats, ranges: Floats
    ) -> None:
        self.distribution, self.b, self.g, self.ranges = distribution, b, g, ranges
        ratios = (g / b).tolist()
        tables = (
            {}
            if distribution == LAPLACE
            else {r: compute_cut_points(distribution, r) for r in set(ratios)}
        )
        self._cuts = [tables[ratio] for ratio in ratios if tables]  # up to 1 MB per scale

    @property
    def limits(self) -> Floats:
        """Outputs in grid steps, (s, 2). Without a bound, scores have no output range in common."""
        if self.distribution.is_bounded:
            return output_limits(self.ranges, self.b, self.g)
        low, high = grid_ranges(self.ranges, self.g).T
        tail = np.ceil(self.distribution.max_scales * self.b / self.g)
        return np.stack([low - tail, high + tail], axis=1)

    @property
    def atom(self) -> float:
        """The largest probability of any single output, at the mode or at a clamp."""
        farthest = grid_ranges(self.ranges, self.g)[:, 1]
        nearest = self.limits[:, 1] - farthest  # steps from a score to its nearer clamp
        return max(
            _compute_atom(self.distribution, steps, ratio)
            for steps, ratio in zip(nearest.tolist(), (self.g / self.b).tolist(), strict=True)
        )

    def add(self, T: Floats, bits: NDArray[np.uint64]) -> Floats:
        """Return scores with noise, on the grid."""
        low, high = grid_ranges(self.ranges, self.g).T  # (s,) each, in grid steps
        steps = np.clip(np.rint(T / self.g), low, high).astype(np.int64)
        steps += self.draw(bits)
        bottom, top = self.limits.T
        Z: Floats = np.clip(steps, bottom, top) * self.g
        return Z + 0.0

    def draw(self, bits: NDArray[np.uint64]) -> Ints:
        """Draw G for each cell, before clamping."""
        if self.distribution == LAPLACE:
            return two_sided_geometric(bits, -self.g / self.b)
        U = to_uniform(bits)
        magnitude = np.empty(U.shape, dtype=np.int64)
        for i, cuts in enumerate(self._cuts):
            magnitude[:, i] = len(cuts) - cuts.searchsorted(U[:, i], side="right")
        return apply_signs(magnitude, bits)


def _compute_atom(distribution: SampledDistribution, nearest: float, ratio: float) -> float:
    """Return the largest probability of one output of a score.

    ``nearest`` is the number of steps to its nearer clamp above it, or below it if negative.
    """
    steps = nearest if nearest >= 1 else 1 - nearest
    mode, clamp = distribution.grid_tail_probability(np.array([1.0, steps]), ratio).tolist()
    clamped = clamp / 2 if nearest >= 1 else 1 - clamp / 2
    return max(1 - float(mode), float(clamped))


def add_laplace_noise(
    T: Floats, bits: NDArray[np.uint64], b: Floats, g: Floats, ranges: Floats
) -> Floats:
    """Return scores with Laplace noise of scale ``b`` on the grid ``g``."""
    return GridNoise(LAPLACE, b, g, ranges).add(T, bits)


def grid_ranges(ranges: Floats, g: Floats) -> Floats:
    """Return bounds in grid steps, widened outward: gamma = exp(R/b) needs no correction."""
    return np.stack([np.floor(ranges[:, 0] / g), np.ceil(ranges[:, 1] / g)], axis=1)


def output_limits(ranges: Floats, b: Floats, g: Floats) -> Floats:
    """Return the common range of outputs in grid steps: [U - 60 b, L + 60 b]."""
    low, high = grid_ranges(ranges, g).T
    tail = np.floor(CLAMP_SCALES * b / g)
    return np.stack([high - tail, low + tail], axis=1)
