"""Likelihood of released components for given records, by the published noise distribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.distances import row_slices
from ppdm_core.numerics.noise_distributions import (
    SAMPLED_DISTRIBUTIONS,
    NoiseDistribution,
    StudentT,
    find_distribution,
)

CACHED_CELLS = 2**15  # at a time: fits the processor cache
_FACTORS_PER_LOGARITHM = 8  # whose product cannot overflow
_OUTSIDE_PENALTY = 50.0  # per scale beyond the end of uniform noise; rounding may lead there


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """Distribution and scales of the noise in the released components."""

    distribution: NoiseDistribution
    scales: Floats  # (s,) above 0

    @property
    def variance(self) -> Floats:
        """(s,) variances; not finite for a distribution without a variance."""
        return np.asarray(self.distribution.variance * self.scales**2)

    @property
    def has_variance(self) -> bool:
        """Whether the distribution has a finite variance."""
        return bool(np.isfinite(self.distribution.variance))

    def widen(self, more: Floats) -> KnownNoise:
        """Return the same distribution with so much more variance, (s,)."""
        unit = self.distribution.variance if self.has_variance else 1.0
        return KnownNoise(self.distribution, np.sqrt(self.scales**2 + more / unit))

    def log_likelihoods(self, Z: Floats, T: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows of Z, log density of each for all rows of T), up to a constant."""
        A, B = Z / self.scales, T / self.scales
        for rows in row_slices(len(A), 2 * len(B)):
            yield rows, self._compare(A[rows], B)

    def _compare(self, A: Floats, B: Floats) -> Floats:
        """Return the log density of all rows of A for all rows of B, both in scales."""
        from scipy.spatial.distance import cdist

        if self.distribution.name == "laplace":
            return np.asarray(-cdist(A, B, "cityblock"))
        if self.distribution.name == "normal":
            return np.asarray(-0.5 * cdist(A, B, "sqeuclidean"))
        total = np.empty((len(A), len(B)))
        size = max(1, CACHED_CELLS // len(B))
        for start in range(0, len(A), size):
            total[start : start + size] = joint_log_density(
                self.distribution, A[start : start + size], B
            )
        return total


def read_noise(public: PublicParameters) -> KnownNoise:
    """Return the published noise; raise NotApplicable if its distribution is not supported."""
    if public.scales is None or public.law not in SAMPLED_DISTRIBUTIONS:
        raise NotApplicable(
            f"{public.method} publishes no noise distribution that is supported.",
            reason=Reason.METHOD_UNKNOWN,
        )
    nu = public.facts.get("nu")
    distribution = find_distribution(public.law, None if nu is None else float(nu))
    least = 1e-9 * max(float(public.scales.max(initial=0.0)), 1e-9)
    return KnownNoise(distribution, np.maximum(public.scales, least))


def log_density(distribution: NoiseDistribution, u: Floats) -> Floats:
    """Return the log density of noise of scale 1, up to a constant.

    Uniform noise has a steep fall beyond its ends in place of a cliff.
    """
    u = np.abs(u)
    if isinstance(distribution, StudentT):
        return np.asarray(-(distribution.nu + 1) / 2 * np.log1p(u**2 / distribution.nu))
    if distribution.name == "logistic":
        return np.asarray(-u - 2 * np.log1p(np.exp(-u)))
    if distribution.name == "normal":
        return np.asarray(-0.5 * u**2)
    if distribution.name == "uniform":
        return np.asarray(-_OUTSIDE_PENALTY * np.maximum(u - 1.0, 0.0))
    return np.asarray(-u)


def joint_log_density(distribution: NoiseDistribution, A: Floats, B: Floats) -> Floats:
    """Return the sum of ``log_density`` over the components of A - B, for all pairs of rows.

    Logarithms are the expensive part, so they are taken of products.
    """
    total, product = np.zeros((len(A), len(B))), np.ones((len(A), len(B)))
    for i in range(A.shape[1]):
        u = np.abs(np.subtract.outer(A[:, i], B[:, i]))
        if isinstance(distribution, StudentT):
            product *= 1.0 + u * u / distribution.nu
        elif distribution.name == "logistic":
            total -= u
            product *= 1.0 + np.exp(-u)
        else:
            total += log_density(distribution, u)
        if i % _FACTORS_PER_LOGARITHM == _FACTORS_PER_LOGARITHM - 1:
            total -= _power(distribution) * np.log(product)
            product.fill(1.0)
    total -= _power(distribution) * np.log(product)
    return total


def _power(distribution: NoiseDistribution) -> float:
    """Return the power of the factors whose product ``joint_log_density`` takes."""
    return (distribution.nu + 1) / 2 if isinstance(distribution, StudentT) else 2.0
