from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

from ppdm_core.noise import (
    LN_SLACK,
    Noise,
    grid_ranges,
    grid_step,
    on_grid,
    reach,
    two_sided_geometric,
)
from ppdm_core.types import Block


def drawn_bits(n: int, columns: int) -> np.ndarray:
    """Bits of n different records under one key: never flaky."""
    rows = Block(
        X=np.arange(n, dtype=np.float64)[:, None],
        C=np.zeros((n, 0), dtype=np.int32),
        label=np.zeros(n, dtype=np.int32),
        key=np.zeros((n, 16), dtype=np.uint8),
        start=0,
    )
    return Noise(bytes(range(32))).bits(rows, "law", columns, b"mechanism")


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
    G = two_sided_geometric(drawn_bits(n, s), ln_q)
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
    bits = drawn_bits(n, 2)
    Z = on_grid(np.tile(T, (n, 1)), bits, b, g, ranges)
    assert np.array_equal(Z / g, np.rint(Z / g))
    bottom, top = (reach(ranges, b, g) * g[:, None]).T
    assert ((bottom <= Z) & (top >= Z)).all()
    variance = 2 * b**2
    # Standard errors: sqrt(2) b / sqrt(n) of the mean, sqrt(20) b^2 / sqrt(n) of the variance.
    assert np.all(np.abs(Z.mean(axis=0) - T) < 4 * np.sqrt(variance / n) + g)
    assert np.all(np.abs(Z.var(axis=0) - variance) < 4 * np.sqrt(20 / n) * b**2)
    assert abs(np.corrcoef(Z.T)[0, 1]) < 4 / np.sqrt(n)
