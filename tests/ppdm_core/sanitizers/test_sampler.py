from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaincinv, gammaincc

from ppdm_core.numerics.amplification import compute_ln_gammas
from ppdm_core.numerics.grid_noise import GridNoise, grid_step
from ppdm_core.numerics.noise_distributions import LAPLACE, Logistic, StudentT
from tests.support.noise_bits import drawn_bits


def draw_noise(noise: GridNoise, score: float, key: int, rows: int) -> np.ndarray:
    """Draw noise of one score for many records with 20 components each."""
    return noise.add(np.full((rows, 20), score), drawn_bits(rows, 20, bytes([key]) * 32)).ravel()


def compute_lower_bound(likely: np.ndarray, unlikely: np.ndarray) -> float:
    """Return the 99.9 % lower bound of ln P/P', from two Clopper-Pearson limits of 99.95 %."""
    hits, misses = int(likely.sum()), int((~likely).sum())
    least = betaincinv(hits, misses + 1, 0.0005)
    most = betaincinv(int(unlikely.sum()) + 1, int((~unlikely).sum()), 0.9995)
    return math.log(least / most)


# In units of the scale: the distance of the two scores, and the outputs beyond the nearer one for
# which the odds are nearly the worst.
WORST = [
    (LAPLACE, 3.0, (0.0, math.inf)),
    (Logistic(), 3.0, (3.6, math.inf)),
    (StudentT(3.0), 2 * math.sqrt(3.0), (0.4, 1.1)),
    (StudentT(1.0), 3.0, (0.15, 0.5)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distribution", "distance", "window"), WORST, ids=[str(w[0]) for w in WORST]
)
def test_sampler_empirical_gamma_within_claim(distribution, distance, window):
    """The sampler meets its claim; the test detects a scale that is 3 % too small."""
    claimed_b, rows = 0.5, 400_000
    R = distance * claimed_b
    ranges = np.tile([0.0, R], (20, 1))
    for planted in (1.0, 0.97):
        b = np.full(20, claimed_b * planted)
        g = np.full(20, grid_step(claimed_b))
        noise = GridNoise(distribution, b, g, ranges)
        near, far = draw_noise(noise, R, 1, rows), draw_noise(noise, 0.0, 2, rows)
        low, high = R + window[0] * b[0], R + window[1] * b[0]
        bound = compute_lower_bound((low <= near) & (near <= high), (low <= far) & (far <= high))
        claim = compute_ln_gammas(
            distribution, np.eye(1), np.array([R]), np.array([claimed_b]), g[:1], ranges[:1], True
        )[0]
        assert (bound <= claim) == (planted == 1.0), (planted, bound, claim)


@pytest.mark.slow
@pytest.mark.parametrize(
    "distribution", [LAPLACE, Logistic(), StudentT(3.0), StudentT(20.0)], ids=str
)
def test_grid_noise_many_draws_pass_chi_square(distribution):
    """On the grid that releases use, in 400 bins of grid steps; at 8 million draws."""
    ratio, rows = grid_step(1.0), 400_000
    noise = GridNoise(distribution, np.ones(20), np.full(20, ratio), np.zeros((20, 2)))
    G = np.rint(draw_noise(noise, 0.0, 3, rows) / ratio).astype(int)
    edges = np.unique(np.rint(np.geomspace(1, 6 / ratio, 200)))  # |G| in [edge, next edge)
    above = np.concatenate([distribution.grid_tail_probability(edges, ratio), [0.0]])
    halves = -np.diff(above) / 2
    expected = G.size * np.concatenate([halves[::-1], [1 - above[0]], halves])
    place = np.searchsorted(edges, np.abs(G), side="right") * np.sign(G)
    observed = np.bincount(place + len(edges), minlength=len(expected))
    chi2 = float(np.sum((observed - expected) ** 2 / expected))
    p = gammaincc((len(expected) - 1) / 2, chi2 / 2)
    assert 1e-4 < p < 1 - 1e-4, p
