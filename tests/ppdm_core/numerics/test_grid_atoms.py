from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from ppdm_core.numerics.grid_noise import GridNoise, compute_cut_points
from ppdm_core.numerics.noise import LN_SLACK
from ppdm_core.numerics.noise_distributions import LAPLACE, Logistic, NoiseDistribution, StudentT
from tests.support.noise_bits import as_bits, each_rounded, sampler


def count_at_least(steps: list[int], noise: GridNoise) -> list[int]:
    """Return for each m how many of the 2^127 values of U give |G| >= m, by bisection."""
    low, high = [-1] * len(steps), [2**127] * len(steps)  # |G| >= m at low, < m at high
    for _ in range(128):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        bits = np.array([as_bits(max(k, 0)) for k in middle])[:, None, :]
        answers = noise.draw(bits)[:, 0].tolist()
        for i, (m, k) in enumerate(zip(steps, middle, strict=True)):
            if high[i] - low[i] > 1:
                low[i], high[i] = (k, high[i]) if answers[i] >= m else (low[i], k)
    return high


# At 2^-20 an atom 60 scales out is only 2^20.5 values of U wide, so 127 bits cannot be that exact;
# grid_step never goes below 1/2000.
@pytest.mark.parametrize(
    ("ratio", "depth"), [(2.0**-3, 60), (1 / 1000, 60), (1 / 1999, 60), (2.0**-20, 54)]
)
def test_grid_noise_laplace_atoms_match_exact_arithmetic(ratio, depth):
    tops = [0, 1, 2, 3, 17, *(int(x / ratio) for x in (0.5, 1, 3.3, 7, 20, 41, depth))]
    steps = sorted({m for top in tops for m in (top, top + 1)})
    counts = dict(zip(steps, count_at_least(steps, sampler(LAPLACE, ratio)), strict=True))
    with mpmath.workprec(200):
        q = mpmath.exp(-mpmath.mpf(ratio))
        for m in tops:
            exact = (1 - q) / (1 + q) * q**m * (2 if m else 1)
            ours = mpmath.mpf(counts[m] - counts[m + 1]) / 2**127
            assert abs(ours / exact - 1) <= LN_SLACK, (m, float(ours / exact - 1))


def exact_tail_probability(distribution: NoiseDistribution, x: mpmath.mpf) -> mpmath.mpf:
    """Return P(|noise| > x) in the precision of the context."""
    if isinstance(distribution, StudentT):
        nu = mpmath.mpf(distribution.nu)
        return mpmath.betainc(nu / 2, mpmath.mpf(1) / 2, 0, nu / (nu + x * x), regularized=True)
    assert isinstance(distribution, Logistic)
    return 2 / (1 + mpmath.exp(x))


def exact_grid_tail(distribution: NoiseDistribution, m: int, ratio: float) -> mpmath.mpf:
    """Return P(|G| >= m): noise from m - 1/2 on is rounded to m or more."""
    return (
        exact_tail_probability(distribution, (m - mpmath.mpf(1) / 2) * mpmath.mpf(ratio))
        if m
        else mpmath.mpf(1)
    )


@pytest.mark.parametrize("ratio", [2.0**-3, 1 / 1000, 1 / 1999])
@each_rounded
def test_grid_noise_rounded_atoms_match_exact_arithmetic(distribution, ratio):
    tops = [0, 1, 2, 17, *(int(x / ratio) for x in (0.5, 1.7, 3.3, 7, 20, 41, 59.8))]
    noise = sampler(distribution, ratio)
    ratio = float(noise.g[0] / noise.b[0])
    steps = sorted({m for top in tops for m in (top, top + 1)})
    counts = dict(zip(steps, count_at_least(steps, noise), strict=True))
    with mpmath.workprec(200):
        for m in tops:
            exact = exact_grid_tail(distribution, m, ratio) - exact_grid_tail(
                distribution, m + 1, ratio
            )
            ours = mpmath.mpf(counts[m] - counts[m + 1]) / 2**127
            # Two such probabilities make a quotient, so each may be off by half the slack.
            assert abs(ours / exact - 1) <= LN_SLACK / 2, (m, float(ours / exact - 1))


@pytest.mark.parametrize(
    ("distribution", "density"),
    [
        (Logistic(), stats.logistic.pdf),
        (StudentT(1.0), stats.t(1).pdf),
        (StudentT(2.7), stats.t(2.7).pdf),
        (StudentT(20.0), stats.t(20).pdf),
    ],
    ids=["logistic", "t1", "t2.7", "t20"],
)
def test_cut_points_every_atom_matches_density(distribution, density):
    """All atoms up to 60 scales match the integral of the density over their cell."""
    ratio = 1 / 1999
    atoms = np.diff(compute_cut_points(distribution, ratio))[::-1]  # P(|G| = m) for m = 1, 2, ...
    nodes, weights = np.polynomial.legendre.leggauss(4)
    m = np.arange(1, len(atoms) + 1)
    cells = 2 * ratio / 2 * (density((m[:, None] + nodes / 2) * ratio) @ weights)
    assert np.max(np.abs(atoms / cells - 1)) <= LN_SLACK / 2


def exact_output_probabilities(
    distribution: NoiseDistribution, noise: GridNoise, score: int
) -> list[mpmath.mpf]:
    """Return P of every output from this score, a multiple of the grid.

    Outputs are cells, and half-lines at the clamps.
    """
    ratio = float(noise.g[0] / noise.b[0])
    bottom, top = noise.limits[0].astype(int).tolist()
    farthest = max(top - score, score - bottom) + 1
    tail = [
        exact_grid_tail(distribution, m, ratio) / 2 for m in range(1, farthest + 1)
    ]  # P(G >= m)

    def up_to(k: int) -> mpmath.mpf:  # P(G <= k)
        return tail[-k - 1] if k < 0 else 1 - tail[k]

    def cell(k: int) -> mpmath.mpf:
        return 1 - 2 * tail[0] if k == 0 else tail[abs(k) - 1] - tail[abs(k)]

    inner = [cell(z - score) for z in range(bottom + 1, top)]
    return [up_to(bottom - score), *inner, tail[top - score - 1]]


@pytest.mark.extended
@pytest.mark.parametrize("width", [1, 40])
@pytest.mark.parametrize("distribution", [Logistic(), StudentT(1.0), StudentT(4.5)], ids=str)
def test_grid_noise_clamped_ln_gamma_matches_exact_arithmetic(distribution, width):
    g, b = np.array([0.25]), np.array([1.0])
    noise = GridNoise(distribution, b, g, np.array([[-0.25 * width, 0.0]]))
    claim = float(distribution.ln_gamma(np.array(width * 0.25)))
    with mpmath.workprec(200):
        high, low = (
            exact_output_probabilities(distribution, noise, score) for score in (0, -width)
        )
        assert abs(sum(high) - 1) < mpmath.mpf(2) ** -150
        ratios = [abs(mpmath.log(p / q)) for p, q in zip(high, low, strict=True)]
        worst = float(max(ratios))
    assert worst <= claim
    assert worst >= claim * 0.99  # and it is nearly reached
