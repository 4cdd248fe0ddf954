"""Link by the sizes of the noise: where a cell has hardly any, it decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._noise_costs import NoiseCosts
from ppdm_core.model.arrays import Floats, Ints

_SCALES = 2.0 ** np.arange(-16, 6)  # of the noise, in deviations of the columns
_STEPS = 40  # of a fit
_PRIOR_PAIRS = 2.0  # known pairs that the differences of other pairs count as
_MAX_SHIFTS = 50  # other rows that each known person is compared with
_UNUSED_BITS = 21  # of a 32-bit float: 8 bits of the exponent and 2 of the mantissa remain
_BINS = 2 ** (31 - _UNUSED_BITS)


@dataclass(frozen=True, eq=False)
class NoiseSizes(NoiseCosts):
    """Costs of links by the sizes of the noise in the cells.

    The distribution of the sizes in each column is learned from known pairs, as a mixture of
    Laplace distributions of many scales, and compared with that of persons and rows that do not
    belong together. If the noise of some cells is small and that of the others wide, no average
    shows it: one near cell is as rare as a match of all.
    """

    tables_at_once: ClassVar[int] = 3

    costs: Floats  # (d, _BINS) minus log odds of a size, by its leading bits

    def compute_block(self, persons: Floats) -> Floats:
        total = np.zeros((len(persons), len(self.rows)))
        for x, y, cost in zip(persons.T, self.rows.T, self.costs, strict=True):
            total += cost[take_leading_bits(np.subtract.outer(x, y))]
        return total


def fit_noise_sizes(persons: Floats, rows: Floats, known: Ints, own_rows: Ints) -> NoiseSizes:
    """Learn the sizes of the noise from the pairs of ``known`` persons and their rows."""
    X, Y = persons[known], rows[own_rows]
    shifts = range(1, min(len(X), _MAX_SHIFTS + 1))
    others = np.sum([count_sizes(np.roll(Y, k, axis=0) - X) for k in shifts], axis=0)
    flat = np.full((X.shape[1], len(_SCALES)), 1.0 / len(_SCALES))
    by_chance = fit_scale_weights(others, flat)
    weights = fit_scale_weights(count_sizes(Y - X), _PRIOR_PAIRS * by_chance)
    densities = measure_densities()
    return NoiseSizes(persons, rows, np.log((by_chance @ densities) / (weights @ densities)))


def fit_scale_weights(counts: Floats, prior: Floats) -> Floats:
    """Return the weight of each scale, per column, that makes the counted sizes likeliest; (d, s).

    ``prior``: (d, s) values that each scale counts as.
    """
    densities = measure_densities()
    weights: Floats = prior / prior.sum(axis=1, keepdims=True)
    for _ in range(_STEPS):
        ratios = counts / (weights @ densities)
        weights = weights * (ratios @ densities.T) + prior
        weights /= weights.sum(axis=1, keepdims=True)
    return weights


def measure_densities() -> Floats:
    """Return the density of Laplace noise of each scale in each bin of sizes; (s, _BINS)."""
    exponent, quarter = np.divmod(np.arange(_BINS), 4)
    sizes = np.ldexp(1.0 + (quarter + 0.5) / 4.0, exponent - 127)
    density = np.exp(-sizes / _SCALES[:, None]) / _SCALES[:, None]
    return np.asarray(np.maximum(density, 1e-30))


def count_sizes(R: Floats) -> Floats:
    """Return how many values of each column have a size in each bin; (d, _BINS)."""
    d = R.shape[1]
    place = take_leading_bits(R) + _BINS * np.arange(d)
    return np.bincount(place.ravel(), minlength=d * _BINS).reshape(d, _BINS).astype(np.float64)


def take_leading_bits(values: Floats) -> Ints:
    """Return the exponents and the first bits of numbers, without their signs."""
    bits = np.abs(values).astype(np.float32).view(np.uint32)
    return np.asarray(bits >> np.uint32(_UNUSED_BITS), dtype=np.intp)
