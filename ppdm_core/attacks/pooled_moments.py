"""Estimate the records of one site by the moments that all other sites can compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.attacks.shrinkage import (
    MAX_SUPPORT_RECORDS,
    Shrinkage,
    estimate_with_sample_support,
    filter_with_moments,
)
from ppdm_core.attacks.transform_inverse import TransformInverse
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import (
    AttackerView,
    Estimate,
    Goal,
    MappedRows,
    RowMap,
    SiteMoments,
)
from ppdm_core.numerics.linear_map import (
    compute_components,
    convert_to_components,
    get_centre_and_loadings,
)


@dataclass(frozen=True)
class PooledMoments(Attack):
    """All other sites and the centre subtract their moments from the sum over all sites.

    What remains are mean and covariance of the records that one site set aside for the common
    basis. These records are in no release, but the records behind the rows of this site come from
    the same persons' population: the moments show how the directions that the basis drops follow
    from the released ones, at this site. The rows alone do not.

    Candidates, clipped to the declared bounds:
    ``linear`` is the linear minimum mean square error estimate with this mean and covariance, where
    the noise has a variance;
    ``posterior`` is the posterior mean under the distribution of the noise, with records drawn from
    a normal distribution with this mean and covariance as the prior.

    References: Bonawitz et al., "Practical secure aggregation for privacy-preserving machine
    learning" (2017), section 4: what a sum hides from all but one of the parties.
    """

    name: ClassVar[str] = "pooled_moments"
    story: ClassVar[str] = (
        "All other sites subtract their moments from the sum, and estimate the records of one site."
    )
    title: ClassVar[str] = "Other sites subtract their moments"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"partner_rows", "site_moments", "public.map", "public.noise"}
    )
    must_notice: ClassVar[Mapping[str, float]] = {"pooled moments": 0.85}
    limited_as: ClassVar[tuple[str, ...]] = (
        Shrinkage.name,
        KnownPairs.name,
        TransformInverse.name,
    )

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.partner_rows is not None
        assert view.site_moments is not None
        noise, public, moments = read_noise(view.public), view.public, view.site_moments
        Z = np.delete(compute_components(view), view.partner_rows, axis=0)
        drawn = draw_records(moments, MAX_SUPPORT_RECORDS[view.effort], rng)
        maps: dict[str, RowMap] = {
            "posterior": estimate_with_sample_support(replace(view, sample=drawn), Z, noise, rng)
        }
        if noise.has_variance:
            centre, loadings = get_centre_and_loadings(public)
            maps["linear"] = filter_with_moments(
                noise.variance, centre, loadings, moments.mean, moments.covariance
            )

        def map_rows(estimate: RowMap, Y: Floats) -> Floats:
            found = estimate(convert_to_components(public, Y))
            return np.clip(found, view.schema.lows, view.schema.highs)

        return Estimate(
            MappedRows(view.Y, {name: partial(map_rows, each) for name, each in maps.items()})
        )


def draw_records(moments: SiteMoments, count: int, rng: np.random.Generator) -> Floats:
    """Draw records from a normal distribution with these moments, (count, d)."""
    values, vectors = np.linalg.eigh(moments.covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(moments.mean + rng.standard_normal((count, len(values))) @ factor.T)
