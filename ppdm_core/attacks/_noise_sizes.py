"""Link by the sizes of the noise: where a cell has hardly any, it decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._noise_costs import NoiseCosts
from ppdm_core.model.arrays import Floats, Ints

_SCALES = 2.0 ** np.arange(-16, 6)  # of the noise, in deviations of the columns
_STEPS = 40  # of the fit
_PRIOR = 0.05  # observed values that each scale counts as
_UNUSED_BITS = 21  # of a 32-bit float: 8 bits of the exponent and 2 of the mantissa remain


@dataclass(frozen=True, eq=False)
class NoiseSizes(NoiseCosts):
    """Costs of links by the sizes of the noise in the cells.

    The distribution of the sizes is learned from known pairs as a mixture of Laplace distributions
    of many scales. If the noise of some cells is small and that of the others wide, no average
    shows it: one near cell is as rare as a match of all.
    """

    tables_at_once: ClassVar[int] = 3

    cost: Floats  # of a size, by its leading bits

    def compute_block(self, persons: Floats) -> Floats:
        total = np.zeros((len(persons), len(self.rows)))
        for x, y in zip(persons.T, self.rows.T, strict=True):
            total += self.cost[take_leading_bits(np.subtract.outer(x, y))]
        return total


def fit_noise_sizes(persons: Floats, rows: Floats, known: Ints, own_rows: Ints) -> NoiseSizes:
    """Learn the sizes of the noise from the pairs of ``known`` persons and their rows."""
    weights = fit_scale_weights(np.abs(rows[own_rows] - persons[known]).ravel())
    exponent, quarter = np.divmod(np.arange(2 ** (31 - _UNUSED_BITS)), 4)
    sizes = np.ldexp(1.0 + (quarter + 0.5) / 4.0, exponent - 127)
    density = measure_densities(sizes) @ weights
    return NoiseSizes(persons, rows, -np.log(np.maximum(density, 1e-30)))


def fit_scale_weights(sizes: Floats) -> Floats:
    """Return the weight of each scale in the mixture that makes the sizes likeliest."""
    densities = measure_densities(sizes)  # (values, scales)
    weights = np.full(len(_SCALES), 1.0 / len(_SCALES))
    for _ in range(_STEPS):
        shares = densities * weights
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        counts = shares.sum(axis=0) + _PRIOR
        weights = counts / counts.sum()
    return weights


def measure_densities(sizes: Floats) -> Floats:
    """Return the density of Laplace noise of each scale at these sizes; (values, scales)."""
    return np.asarray(np.exp(-sizes[:, None] / _SCALES) / _SCALES)


def take_leading_bits(values: Floats) -> Ints:
    """Return the exponents and the first bits of numbers, without their signs."""
    bits = np.abs(values).astype(np.float32).view(np.uint32)
    return np.asarray(bits >> np.uint32(_UNUSED_BITS), dtype=np.intp)
