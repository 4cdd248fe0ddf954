"""Noise of a distribution on a grid, from keyed bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.noise_distributions import CLAMP_SCALES, LAPLACE, NoiseDistribution

GRID_SHARE = 1000  # least number of grid steps per noise scale


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


def compute_cut_points(distribution: NoiseDistribution, ratio: float) -> Floats:
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
        self, distribution: NoiseDistribution, b: Floats, g: Floats, ranges: Floats
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
        tail = unbounded_tail(self.distribution, self.b, self.g)
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


def _compute_atom(distribution: NoiseDistribution, nearest: float, ratio: float) -> float:
    """Return the largest probability of one output of a score.

    ``nearest`` is the number of steps to its nearer clamp above it, or below it if negative.
    """
    steps = nearest if nearest >= 1 else 1 - nearest
    mode, clamp = distribution.grid_tail_probability(np.array([1.0, steps]), ratio).tolist()
    clamped = clamp / 2 if nearest >= 1 else 1 - clamp / 2
    return max(1 - float(mode), float(clamped))


def grid_ranges(ranges: Floats, g: Floats) -> Floats:
    """Return bounds in grid steps, widened outward: gamma = exp(R/b) needs no correction."""
    return np.stack([np.floor(ranges[:, 0] / g), np.ceil(ranges[:, 1] / g)], axis=1)


def output_limits(ranges: Floats, b: Floats, g: Floats) -> Floats:
    """Return the common range of outputs in grid steps: [U - 60 b, L + 60 b]."""
    low, high = grid_ranges(ranges, g).T
    tail = bounded_tail(b, g)
    return np.stack([high - tail, low + tail], axis=1)


def bounded_tail(b: Floats, g: Floats) -> Floats:
    """Return how far an output can be from a score, in grid steps, for a bounded distribution."""
    return np.asarray(np.floor(CLAMP_SCALES * b / g))


def unbounded_tail(distribution: NoiseDistribution, b: Floats, g: Floats) -> Floats:
    """Return how far an output can be from a score, in grid steps, for an unbounded one."""
    return np.asarray(np.ceil(distribution.max_scales * b / g))


def invert_limits(distribution: NoiseDistribution, limits: Floats, b: Floats, g: Floats) -> Floats:
    """Return the ranges of the scores, widened to the grid, of a release with these ``limits``.

    It is the inverse of ``GridNoise.limits``, both in units of the scores, (s, 2).
    """
    bottom, top = np.rint(limits / g[:, None]).T
    if distribution.is_bounded:
        tail = bounded_tail(b, g)
        low, high = top - tail, bottom + tail
    else:
        tail = unbounded_tail(distribution, b, g)
        low, high = bottom + tail, top - tail
    return np.stack([low * g, high * g], axis=1)
