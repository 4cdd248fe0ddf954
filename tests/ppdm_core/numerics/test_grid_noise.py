from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

from ppdm_core.numerics.grid_noise import (
    GridNoise,
    grid_ranges,
    grid_step,
    output_limits,
    two_sided_geometric,
)
from ppdm_core.numerics.noise_distributions import LAPLACE, Logistic, Normal, StudentT, Uniform
from tests.support.noise_bits import ROUNDED, as_bits, drawn_bits, each_rounded, sampler


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-250, 1e250))
def test_grid_step_is_largest_power_of_two_below_thousandth(scale):
    g = Fraction(grid_step(scale))
    assert 1 in (g.numerator, g.denominator)
    assert (g.numerator * g.denominator).bit_count() == 1
    assert g <= Fraction(scale) / 1000 < 2 * g


@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_grid_step_next_to_power_of_two(exponent):
    scale = 1000 * 2.0**exponent
    assert grid_step(scale) == 2.0**exponent
    assert grid_step(np.nextafter(scale, 0)) == 2.0 ** (exponent - 1)


def test_two_sided_geometric_follows_its_distribution():
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


@pytest.mark.parametrize("distribution", [*ROUNDED, Normal(), Uniform()], ids=str)
def test_grid_noise_rounded_follows_its_distribution(distribution):
    n, ratio = 100_000, 1 / 8
    noise = sampler(distribution, ratio)
    G = noise.draw(drawn_bits(n, 1))[:, 0]
    edge = max(
        m
        for m in range(1, 480)
        if n * float(distribution.grid_tail_probability(np.array(m), ratio)) > 200
    )
    above = np.append(
        distribution.grid_tail_probability(np.arange(1.0, edge + 1), ratio), 0.0
    )  # (edge + 1,)
    atoms = -np.diff(above) / 2
    expected = n * np.concatenate([atoms[::-1], [1 - above[0]], atoms])
    observed = np.bincount(np.clip(G, -edge, edge) + edge, minlength=len(expected))
    chi2 = np.sum((observed - expected) ** 2 / expected)
    p = gammaincc((len(expected) - 1) / 2, chi2 / 2)
    assert 1e-4 < p < 1 - 1e-4, p


@each_rounded
def test_grid_noise_rounded_every_input_reaches_every_output(distribution):
    b, g, ranges = np.array([0.5]), np.array([0.25]), np.array([[-2.9, 4.8]])
    noise = GridNoise(distribution, b, g, ranges)
    bottom, top = noise.limits[0]
    everything = set((np.arange(bottom, top + 1) * g[0]).tolist())
    cuts = distribution.grid_tail_probability(
        np.arange(1.0, 121.0), 0.5
    ).tolist()  # 60 scales are 120 steps
    shares = [(a + b) / 2 for a, b in pairwise([1.0, *cuts, 0.0])]
    ks = [int(Fraction(share) * 2**127) for share in shares]
    bits = np.array([[as_bits(k, negative)] for k in ks for negative in (False, True)])
    for x in (-3.0, -2.9, 0.0, 1.3, 4.75, 5.0):
        Z = noise.add(np.full((len(bits), 1), x), bits)
        assert set(Z[:, 0].tolist()) == everything, x


def test_grid_noise_unbounded_is_not_clamped():
    for distribution, farthest in ((Uniform(), 1.0), (Normal(), 12.0)):
        noise = GridNoise(
            distribution, np.array([0.5]), np.array([2.0**-11]), np.array([[0.0, 1.0]])
        )
        low, high = noise.limits[0] * 2.0**-11
        assert (low, high) == (-farthest / 2, 1 + farthest / 2)
        ends = np.array([[as_bits(0, True)], [as_bits(0)]])  # U next to 0: as far as it goes
        Z = noise.add(np.array([[0.0], [1.0]]), ends)[:, 0]
        assert Z.tolist() == [low, high]


@pytest.mark.extended
@pytest.mark.parametrize("distribution", [LAPLACE, StudentT(1.0), Uniform()], ids=str)
@pytest.mark.parametrize("width", [1.0, 59.0, 70.0])
def test_atom_is_probability_of_likeliest_output(distribution, width):
    noise = GridNoise(distribution, np.ones(1), np.array([2.0**-4]), np.array([[0.0, width]]))
    n = 40_000
    likeliest = 0.0
    for x in (0.0, width):
        _, seen = np.unique(noise.add(np.full((n, 1), x), drawn_bits(n, 1)), return_counts=True)
        likeliest = max(likeliest, seen.max() / n)
    slack = 5 * np.sqrt(noise.atom / n)
    assert likeliest <= noise.atom + slack
    assert likeliest >= noise.atom - slack


GOLDEN = {
    "logistic": [1380, 2434, -122, -2483, 227, -997],
    "student_t": [972, 1842, -83, -1887, 154, -691],
    "normal": [839, 1405, -77, -1430, 142, -615],
    "uniform": [602, 850, -61, -857, 113, -463],
}


@pytest.mark.parametrize("distribution", [Logistic(), StudentT(3.0), Normal(), Uniform()], ids=str)
def test_grid_noise_golden_draws(distribution):
    assert (
        sampler(distribution, 1 / 1024).draw(drawn_bits(6, 1))[:, 0].tolist()
        == GOLDEN[distribution.name]
    )


def test_two_sided_geometric_sign_is_separate_bit():
    for k in (2**100, 2**120, 2**125):
        both = np.array([[as_bits(k)], [as_bits(k, negative=True)]])
        plus, minus = two_sided_geometric(both, np.array([-0.1]))[:, 0].tolist()
        assert plus == -minus > 0


def test_grid_noise_laplace_every_input_reaches_every_output():
    b, g, ranges = np.array([0.5]), np.array([0.25]), np.array([[-2.9, 4.8]])
    bottom, top = output_limits(ranges, b, g)[0]
    assert (bottom, top) == (20 - 120, -12 + 120)
    everything = set((np.arange(bottom, top + 1) * g[0]).tolist())
    q = np.exp(-g / b)[0]
    cuts = [int(min(2 * q**m / (1 + q), 1.0) * 2**127) for m in range(176)]
    ks = [(low + high) // 2 for high, low in pairwise(cuts)]
    bits = np.array([[as_bits(k, negative)] for k in ks for negative in (False, True)])
    for x in np.arange(-3.0, 5.01, 0.25):
        Z = GridNoise(LAPLACE, b, g, ranges).add(np.full((len(bits), 1), x), bits)
        assert set(Z[:, 0].tolist()) == everything, x


def test_grid_noise_scores_outside_range_are_clipped_first():
    b, g, ranges = np.array([0.5]), np.array([0.25]), np.array([[-1.0, 1.0]])
    none = np.array([[as_bits(2**127 - 1)]] * 3)  # U near 1: no noise
    Z = GridNoise(LAPLACE, b, g, ranges).add(np.array([[-7.0], [0.3], [99.0]]), none)
    assert Z[:, 0].tolist() == [-1.0, 0.25, 1.0]


def test_grid_ranges_widen_bounds_to_grid():
    ranges = np.array([[-0.3, 0.3], [-1.0, 1.0]])
    assert grid_ranges(ranges, np.array([0.25, 0.25])).tolist() == [[-2, 2], [-4, 4]]


def test_grid_noise_outputs_on_grid_with_laplace_moments():
    n = 100_000
    b = np.array([0.3, 2.0])
    g = np.array([grid_step(scale) for scale in b])
    ranges = np.array([[-3.0, 3.0], [-5.0, 5.0]])
    T = np.array([1.2345, -2.0])
    bits = drawn_bits(n, 2)
    Z = GridNoise(LAPLACE, b, g, ranges).add(np.tile(T, (n, 1)), bits)
    assert np.array_equal(Z / g, np.rint(Z / g))
    bottom, top = (output_limits(ranges, b, g) * g[:, None]).T
    assert ((bottom <= Z) & (top >= Z)).all()
    variance = 2 * b**2
    # Standard errors: sqrt(2) b / sqrt(n) of the mean, sqrt(20) b^2 / sqrt(n) of the variance.
    assert np.all(np.abs(Z.mean(axis=0) - T) < 4 * np.sqrt(variance / n) + g)
    assert np.all(np.abs(Z.var(axis=0) - variance) < 4 * np.sqrt(20 / n) * b**2)
    assert abs(np.corrcoef(Z.T)[0, 1]) < 4 / np.sqrt(n)
