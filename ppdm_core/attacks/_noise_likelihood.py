"""How likely released components are for given records, by the published law of the noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.distances import row_slices
from ppdm_core.numerics.distributions import (
    SAMPLED_DISTRIBUTIONS,
    SampledDistribution,
    StudentT,
    find_distribution,
)

CACHED_CELLS = 2**15  # cells that are worked on at once: they stay in the cache
_FACTORS_PER_LOGARITHM = 8  # factors that cannot overflow together
_OUTSIDE_PENALTY = (
    50.0  # price of a scale beyond the end of uniform noise: a rounded value may be there
)


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """Law and scales of the noise in the released components."""

    law: SampledDistribution
    scales: Floats  # (s,) above 0

    @property
    def variance(self) -> Floats:
        """(s,) not finite for a law without one."""
        return np.asarray(self.law.variance * self.scales**2)

    @property
    def has_variance(self) -> bool:
        return bool(np.isfinite(self.law.variance))

    def widen(self, more: Floats) -> KnownNoise:
        """The same law with so much more variance, (s,)."""
        unit = self.law.variance if self.has_variance else 1.0
        return KnownNoise(self.law, np.sqrt(self.scales**2 + more / unit))

    def log_likelihoods(self, Z: Floats, T: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows of Z, log density of each for all rows of T), up to a constant."""
        A, B = Z / self.scales, T / self.scales
        for rows in row_slices(len(A), 2 * len(B)):
            yield rows, self._compare(A[rows], B)

    def _compare(self, A: Floats, B: Floats) -> Floats:
        from scipy.spatial.distance import cdist

        if self.law.name == "laplace":
            return np.asarray(-cdist(A, B, "cityblock"))
        if self.law.name == "normal":
            return np.asarray(-0.5 * cdist(A, B, "sqeuclidean"))
        total = np.empty((len(A), len(B)))
        size = max(1, CACHED_CELLS // len(B))
        for start in range(0, len(A), size):
            total[start : start + size] = joint_log_density(self.law, A[start : start + size], B)
        return total


def read_noise(public: PublicParameters) -> KnownNoise:
    if public.scales is None or public.law not in SAMPLED_DISTRIBUTIONS:
        raise NotApplicable(
            f"{public.method} publishes no noise law that is known here.",
            reason=Reason.METHOD_UNKNOWN,
        )
    nu = public.facts.get("nu")
    law = find_distribution(public.law, None if nu is None else float(nu))
    least = 1e-9 * max(float(public.scales.max(initial=0.0)), 1e-9)
    return KnownNoise(law, np.maximum(public.scales, least))


def log_density(law: SampledDistribution, u: Floats) -> Floats:
    """Of noise of scale 1, up to a constant; for uniform noise with a steep fall in place of a
    cliff."""
    u = np.abs(u)
    if isinstance(law, StudentT):
        return np.asarray(-(law.nu + 1) / 2 * np.log1p(u**2 / law.nu))
    if law.name == "logistic":
        return np.asarray(-u - 2 * np.log1p(np.exp(-u)))
    if law.name == "normal":
        return np.asarray(-0.5 * u**2)
    if law.name == "uniform":
        return np.asarray(-_OUTSIDE_PENALTY * np.maximum(u - 1.0, 0.0))
    return np.asarray(-u)


def joint_log_density(law: SampledDistribution, A: Floats, B: Floats) -> Floats:
    """Sum of ``log_density`` over the components of A - B, for all pairs of rows.

    Logarithms are the dear part, so they are taken of products.
    """
    total, product = np.zeros((len(A), len(B))), np.ones((len(A), len(B)))
    for i in range(A.shape[1]):
        u = np.abs(np.subtract.outer(A[:, i], B[:, i]))
        if isinstance(law, StudentT):
            product *= 1.0 + u * u / law.nu
        elif law.name == "logistic":
            total -= u
            product *= 1.0 + np.exp(-u)
        else:
            total += log_density(law, u)
        if i % _FACTORS_PER_LOGARITHM == _FACTORS_PER_LOGARITHM - 1:
            total -= _power(law) * np.log(product)
            product.fill(1.0)
    total -= _power(law) * np.log(product)
    return total


def _power(law: SampledDistribution) -> float:
    return (law.nu + 1) / 2 if isinstance(law, StudentT) else 2.0
