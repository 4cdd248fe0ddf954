"""Average the noise over several releases of the same records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._assignment import has_noise_distribution
from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._earlier_draws import RowDraws, gather_draws
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.attacks.shrinkage import Shrinkage
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.decompositions import decompose_symmetric
from ppdm_core.numerics.linear_map import has_map, invert
from ppdm_core.numerics.noise_distributions import NoiseDistribution, StudentT

_MAX_STEPS = 30  # of the iteration for the likeliest value


@dataclass(frozen=True)
class ReleaseAveraging(Attack):
    """A subscriber keeps the earlier releases of the same persons and combines them.

    Candidates: the ``mean``, weighted by the known precision of the noise, and the ``median`` of
    all versions of a row; where the noise distribution is public, the ``likeliest`` value (normal:
    the weighted mean; Laplace: the weighted median; uniform: the middle of what is possible;
    Student's t and logistic: by repeated weighting), and where that has a variance ``shrunk``: the
    likeliest values, filtered for the noise that remains in each row, and all that ``shrinkage``
    makes of them, taking the remaining noise as normal with the same variance everywhere. A version
    that repeats another one is the same draw of noise and counts once. A first release has one
    version.

    Versions are averaged as components of the current map, else in the original columns, and mapped
    back; all are clipped to the declared bounds. An earlier release with another map is brought
    there through the original columns, and has no part in the likeliest values; one that publishes
    neither a map nor original columns is left out.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), whose noise this averages out; Huber
    (1981), likeliest values by repeated weighting.
    """

    name: ClassVar[str] = "release_averaging"
    story: ClassVar[str] = "A subscriber averages over all releases of the same persons."
    title: ClassVar[str] = "Averages over several releases"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"earlier_releases"})
    must_notice: ClassVar[Mapping[str, float]] = {"twenty releases": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        public = view.public
        if not has_map(public) and public.space != "original":
            raise NotApplicable(
                f"The attack {self.name} needs a published linear map or the original columns."
            )
        draws = gather_draws(view)
        found = {"mean": draws.weighted_mean(draws.precision), "median": draws.weighted_median()}
        left: Floats | None = None
        if has_noise_distribution(view):
            distribution, own = (
                read_noise(public).distribution,
                draws.select(draws.has_current_noise),
            )
            T = estimate_likeliest(own, distribution)
            found["likeliest"] = T
            if np.isfinite(distribution.variance):
                left = remaining_variance(own, distribution)
                found["shrunk"] = shrink_to_mean(T, left)
        if has_map(public):
            found = {name: invert(public, Z) for name, Z in found.items()}
        if left is not None and len(draws.row) > draws.m:
            found |= filter_remaining_noise(view, T, left, rng)
        low, high = view.schema.lows, view.schema.highs
        return Estimate(
            {name: np.clip(X_hat, low, high) for name, X_hat in found.items()},
            notes={"versions_of_a_row": len(draws.row) / max(draws.m, 1)},
        )


def filter_remaining_noise(
    view: AttackerView, T: Floats, left: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    """Apply the attack on a single release to the likeliest components, which hold less noise."""
    public = replace(
        view.public, space="components", law="normal", scales=np.sqrt(left.mean(axis=0))
    )
    found = Shrinkage().attack(replace(view, Y=T, public=public), rng)
    return {f"{Shrinkage.name}/{name}": X_hat for name, X_hat in found.candidates.items()}


def variance_ratio(distribution: NoiseDistribution) -> float:
    """Return the variance of the likeliest value as a share of that of the mean, for many draws."""
    if isinstance(distribution, StudentT):
        nu = distribution.nu
        return (nu + 3) * (nu - 2) / ((nu + 1) * nu)
    return {"laplace": 0.5, "logistic": 9 / np.pi**2}.get(distribution.name, 1.0)


def remaining_variance(draws: RowDraws, distribution: NoiseDistribution) -> Floats:
    """Return the variance that remains in the likeliest values, by the available draws; (m, s)."""
    present = np.where(np.isnan(draws.Z), np.nan, 1.0)
    precision = draws.sum_by_row(present / (distribution.variance * draws.scale**2))
    return np.asarray(
        np.where(draws.sum_by_row(present) > 1, variance_ratio(distribution), 1.0) / precision
    )


def estimate_likeliest(draws: RowDraws, distribution: NoiseDistribution) -> Floats:
    """Return the likeliest values under the noise distribution, (m, s)."""
    if distribution.name == "normal":
        return draws.weighted_mean(draws.scale**-2.0)
    if distribution.name == "uniform":
        most = draws.find_extreme(draws.Z + draws.scale, largest=False)
        least = draws.find_extreme(draws.Z - draws.scale, largest=True)
        return np.asarray((least + most) / 2)
    middle = draws.weighted_median(1 / draws.scale)
    if distribution.name == "laplace":
        return middle
    for _ in range(_MAX_STEPS):  # means by weights that fall with the distance
        gap = np.abs(draws.Z - middle[draws.row]) / draws.scale
        if isinstance(distribution, StudentT):
            weight = 1.0 / (distribution.nu + gap**2)
        else:
            weight = np.where(gap < 1e-6, 0.5, np.tanh(gap / 2) / np.maximum(gap, 1e-12))
        middle = draws.weighted_mean(weight / draws.scale**2)
    return middle


def shrink_to_mean(T: Floats, left: Floats) -> Floats:
    """Apply a Wiener filter: the less noise is left in a row (m, s), the less it is moved."""
    mean = T.mean(axis=0)
    centred = T - mean
    cov = centred.T @ centred / max(len(T) - 1, 1) - np.diag(left.mean(axis=0))
    values, vectors = decompose_symmetric(cov)
    signal = (vectors * np.maximum(values, 0.0)) @ vectors.T
    kinds, kind = np.unique(left, axis=0, return_inverse=True)
    found = np.empty_like(T)
    for number, noise in enumerate(kinds):
        rows = np.flatnonzero(kind.ravel() == number)
        seen = signal + np.diag(noise)
        found[rows] = mean + centred[rows] @ np.linalg.pinv(seen, hermitian=True) @ signal
    return found
