from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

from ppdm_core.noise import (
    LN_SLACK,
    Noise,
    framed,
    grid_ranges,
    grid_step,
    on_grid,
    reach,
    two_sided_geometric,
)
from ppdm_core.types import Block

KEY = bytes(range(32))
FINGERPRINT = b"mechanism"


# A release of an unchanged record must keep its bytes: whoever changes these starts a new scheme.
GOLDEN = {
    "bits": "4bea292a60ec2c7ec8fd8ca723d694c9d0bd5011c388790d446fcfb5bc0dd4ef",
    "subkey": "134f28674cc8ffaac78dcba6c8c4fc411bb303a284fb6b46be6e77f24855b41b",
    "derive": "78ff838278246c5153b9afc2fcdd1185f63cd66f16936b7e4bee1d865313b336",
    "record": "e3f8232c2523dd035585fb52e0506cc5",
    "rank": "59d3882b9432eb2a",
    "generator": "9b2f1b9f763687c6",
}


def block(n: int = 3, d: int = 2) -> Block:
    return Block(
        X=np.arange(n * d, dtype=np.float64).reshape(n, d) / 4,
        C=np.zeros((n, 0), dtype=np.int32),
        label=np.zeros(n, dtype=np.int32),
        key=np.arange(n * 16, dtype=np.uint8).reshape(n, 16),
        start=0,
    )


def prefixed(*parts: bytes) -> bytes:
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def one_cell(key: bytes, record: bytes, values: list[float], component: int, name: bytes) -> bytes:
    """The scheme written down once more, for a single cell."""

    def subkey(purpose: bytes) -> bytes:
        text = prefixed(b"ppdm-noise-1", purpose, name)
        return hashlib.blake2b(text, key=key, digest_size=32).digest()

    data = record + b"".join(struct.pack("<d", value) for value in values)
    text = prefixed(name, FINGERPRINT) + prefixed(data)
    digest = hashlib.blake2b(text, key=subkey(b"digest"), digest_size=16).digest()
    cipher = Cipher(algorithms.AES256(subkey(b"cell")), modes.ECB()).encryptor()
    return cipher.update(digest[:12] + struct.pack("<I", component))


def test_bits_are_those_of_the_scheme_cell_by_cell():
    rows = block(5, 3)
    bits = Noise(KEY).bits(rows, "law", 4, FINGERPRINT)
    assert bits.shape == (5, 4, 2)
    for i in range(5):
        for component in range(4):
            expected = one_cell(KEY, bytes(rows.key[i]), rows.X[i].tolist(), component, b"law")
            assert bits[i, component].tobytes() == expected


def test_golden_bytes():
    noise = Noise(KEY)
    assert noise.bits(block(), "law", 2, FINGERPRINT)[1].tobytes().hex() == GOLDEN["bits"]
    assert noise.subkey("a", "b").hex() == GOLDEN["subkey"]
    assert noise.derive("shadow").subkey("a").hex() == GOLDEN["derive"]
    assert noise.record_keys([b"patient 1"], "ids")[0].hex() == GOLDEN["record"]
    assert noise.ranks(block().key, "order")[2:].tobytes().hex() == GOLDEN["rank"]
    assert noise.generator("rotation").bytes(8).hex() == GOLDEN["generator"]


def test_framing_tells_lists_apart():
    assert framed("ab", "c") != framed("a", "bc")
    assert framed("ab") != framed("ab", "")
    assert framed("é") == prefixed("é".encode())


def bits_of(rows: Block, key: bytes = KEY, name: str = "law", print_: bytes = FINGERPRINT) -> bytes:
    return Noise(key).bits(rows, name, 2, print_)[1].tobytes()


def test_what_changes_the_bits_and_what_does_not():
    rows = block()
    before = bits_of(rows)
    value, record = rows.X.copy(), rows.key.copy()
    value[1, 0] = np.nextafter(value[1, 0], 1.0)
    record[1, 15] ^= 1
    seen = {
        before,
        bits_of(replace(rows, X=value)),
        bits_of(replace(rows, key=record)),
        bits_of(rows, key=KEY[::-1]),
        bits_of(rows, name="other law"),
        bits_of(rows, print_=b"mechanisn"),
    }
    assert len(seen) == 6
    assert bits_of(replace(rows, label=np.ones(3, dtype=np.int32), start=7)) == before


def test_other_records_do_not_change_a_record():
    rows, longer = block(3), block(9)
    assert bits_of(rows) == bits_of(longer)


def test_minus_zero_is_zero():
    rows = block()
    X = rows.X.copy()
    X[0, 0] = 0.0
    plus = Noise(KEY).bits(replace(rows, X=X), "law", 1, FINGERPRINT)
    X = X.copy()
    X[0, 0] = -0.0
    assert np.array_equal(Noise(KEY).bits(replace(rows, X=X), "law", 1, FINGERPRINT), plus)


def test_purposes_have_separate_subkeys():
    noise = Noise(KEY)
    purposes = [
        ("cell", "law"),
        ("digest", "law"),
        ("record", "law"),
        ("rank", "law"),
        ("generator", "law"),
        ("derive", "law"),
        ("cell", "other"),
        ("celllaw",),
        ("cell", "law", ""),
    ]
    assert len({noise.subkey(*purpose) for purpose in purposes}) == len(purposes)
    draws = {noise.generator(name).bytes(16) for name in ("matrix", "order")}
    draws |= {noise.derive(k).generator("matrix").bytes(16) for k in ("0", "1")}
    assert len(draws) == 4
    rows = block()
    assert not np.array_equal(noise.ranks(rows.key, "order"), noise.ranks(rows.key, "aside"))
    assert noise.record_keys([b"1"], "a") != noise.record_keys([b"1"], "b")


def test_a_key_has_32_bytes_and_is_never_shown():
    with pytest.raises(ValueError, match="32 bytes"):
        Noise(b"short")
    assert KEY.hex() not in repr(Noise(KEY))
    assert repr(KEY) not in repr(Noise(KEY))


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-250, 1e250))
def test_grid_step_is_the_largest_power_of_two_below_a_thousandth(scale):
    g = Fraction(grid_step(scale))
    assert 1 in (g.numerator, g.denominator)
    assert (g.numerator * g.denominator).bit_count() == 1
    assert g <= Fraction(scale) / 1000 < 2 * g


@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_grid_step_next_to_a_power_of_two(exponent):
    scale = 1000 * 2.0**exponent
    assert grid_step(scale) == 2.0**exponent
    assert grid_step(np.nextafter(scale, 0)) == 2.0 ** (exponent - 1)


def test_two_sided_geometric_follows_its_law():
    n, s, ln_q = 60_000, 4, np.array([-0.5, -0.1, -1 / 40, -2.0])
    G = two_sided_geometric(Noise(KEY).bits(block(n, 1), "law", s, FINGERPRINT), ln_q)
    for column, ln in zip(G.T, ln_q.tolist(), strict=True):
        q = np.exp(ln)
        edge = int(np.ceil(np.log(200 / n) / ln))  # cells beyond hold about 200
        k = np.arange(-edge, edge + 1)
        expected = (1 - q) / (1 + q) * q ** np.abs(k)
        tail = q ** (edge + 1) / (1 + q)
        expected = n * np.concatenate([[tail], expected, [tail]])
        cells = np.clip(column, -edge - 1, edge + 1) + edge + 1
        observed = np.bincount(cells, minlength=len(expected))
        chi2 = np.sum((observed - expected) ** 2 / expected)
        p = gammaincc((len(expected) - 1) / 2, chi2 / 2)
        assert 1e-4 < p < 1 - 1e-4, (ln, p)


def as_bits(k: int, negative: bool = False) -> np.ndarray:
    """U = (k + 1/2) / 2^127 and a sign, as the cipher would deliver them."""
    high = (k >> 64) | (int(negative) << 63)
    return np.array([high, k & (2**64 - 1)], dtype=np.uint64)


def magnitudes(ks: list[int], ln_q: float) -> list[int]:
    bits = np.array([as_bits(k) for k in ks])[:, None, :]
    return two_sided_geometric(bits, np.array([ln_q]))[:, 0].tolist()


def counts_at_least(steps: list[int], ln_q: float) -> list[int]:
    """For each m: how many of the 2^127 values of U give |G| >= m, by bisection."""
    low, high = [-1] * len(steps), [2**127] * len(steps)  # |G| >= m at low, < m at high
    for _ in range(128):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        answers = magnitudes([max(k, 0) for k in middle], ln_q)
        for i, (m, k) in enumerate(zip(steps, middle, strict=True)):
            if high[i] - low[i] > 1:
                low[i], high[i] = (k, high[i]) if answers[i] >= m else (low[i], k)
    return high


# At 2^-20 an atom 60 scales out is only 2^20.5 values of U wide, so 127 bits cannot be that exact;
# grid_step never goes below 1/2000.
@pytest.mark.parametrize(
    ("ratio", "depth"), [(2.0**-3, 60), (1 / 1000, 60), (1 / 1999, 60), (2.0**-20, 54)]
)
def test_atoms_against_exact_arithmetic(ratio, depth):
    tops = [0, 1, 2, 3, 17, *(int(x / ratio) for x in (0.5, 1, 3.3, 7, 20, 41, depth))]
    steps = sorted({m for top in tops for m in (top, top + 1)})
    counts = dict(zip(steps, counts_at_least(steps, -ratio), strict=True))
    with mpmath.workprec(200):
        q = mpmath.exp(-mpmath.mpf(ratio))
        for m in tops:
            exact = (1 - q) / (1 + q) * q**m * (2 if m else 1)
            ours = mpmath.mpf(counts[m] - counts[m + 1]) / 2**127
            assert abs(ours / exact - 1) <= LN_SLACK, (m, float(ours / exact - 1))


def test_the_sign_is_a_bit_of_its_own():
    for k in (2**100, 2**120, 2**125):
        both = np.array([[as_bits(k)], [as_bits(k, negative=True)]])
        plus, minus = two_sided_geometric(both, np.array([-0.1]))[:, 0].tolist()
        assert plus == -minus > 0


def test_every_input_reaches_every_output():
    b, g, ranges = np.array([0.5]), np.array([0.25]), np.array([[-2.9, 4.8]])
    bottom, top = reach(ranges, b, g)[0]
    assert (bottom, top) == (20 - 120, -12 + 120)
    everything = set((np.arange(bottom, top + 1) * g[0]).tolist())
    q = np.exp(-g / b)[0]
    cuts = [int(min(2 * q**m / (1 + q), 1.0) * 2**127) for m in range(176)]
    ks = [(low + high) // 2 for high, low in pairwise(cuts)]
    bits = np.array([[as_bits(k, negative)] for k in ks for negative in (False, True)])
    for x in np.arange(-3.0, 5.01, 0.25):
        Z = on_grid(np.full((len(bits), 1), x), bits, b, g, ranges)
        assert set(Z[:, 0].tolist()) == everything, x


def test_scores_outside_their_range_are_clipped_before_the_noise():
    b, g, ranges = np.array([0.5]), np.array([0.25]), np.array([[-1.0, 1.0]])
    none = np.array([[as_bits(2**127 - 1)]] * 3)  # U near 1: no noise
    Z = on_grid(np.array([[-7.0], [0.3], [99.0]]), none, b, g, ranges)
    assert Z[:, 0].tolist() == [-1.0, 0.25, 1.0]


def test_bounds_are_widened_to_the_grid():
    ranges = np.array([[-0.3, 0.3], [-1.0, 1.0]])
    assert grid_ranges(ranges, np.array([0.25, 0.25])).tolist() == [[-2, 2], [-4, 4]]


def test_outputs_lie_on_the_grid_with_the_moments_of_laplace():
    n = 100_000
    b = np.array([0.3, 2.0])
    g = np.array([grid_step(scale) for scale in b])
    ranges = np.array([[-3.0, 3.0], [-5.0, 5.0]])
    T = np.array([1.2345, -2.0])
    bits = Noise(KEY).bits(block(n, 1), "law", 2, FINGERPRINT)
    Z = on_grid(np.tile(T, (n, 1)), bits, b, g, ranges)
    assert np.array_equal(Z / g, np.rint(Z / g))
    bottom, top = (reach(ranges, b, g) * g[:, None]).T
    assert ((bottom <= Z) & (top >= Z)).all()
    variance = 2 * b**2
    # Standard errors: sqrt(2) b / sqrt(n) of the mean, sqrt(20) b^2 / sqrt(n) of the variance.
    assert np.all(np.abs(Z.mean(axis=0) - T) < 4 * np.sqrt(variance / n) + g)
    assert np.all(np.abs(Z.var(axis=0) - variance) < 4 * np.sqrt(20 / n) * b**2)
    assert abs(np.corrcoef(Z.T)[0, 1]) < 4 / np.sqrt(n)
