"""The published linear map: what follows from ``PublicParameters`` alone.

Loadings are published rounded, so they are inverted with ``pinv``, never by transposing.
"""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.grid_noise import invert_limits
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS, find_distribution


def has_map(public: PublicParameters) -> bool:
    """Return whether the release publishes a linear map."""
    return public.centre is not None and public.loadings is not None


def has_same_map(one: PublicParameters, other: PublicParameters) -> bool:
    """Return whether two releases publish the same map, or none in the same space."""
    if not has_map(one) or not has_map(other):
        return has_map(one) == has_map(other) and one.space == other.space
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("centre", "loadings")
    )


def has_noise(public: PublicParameters) -> bool:
    """Return whether the release publishes the scales of its noise."""
    return public.scales is not None


def get_centre_and_loadings(public: PublicParameters) -> tuple[Floats, Floats]:
    """Return the published map, or raise NotApplicable if there is none."""
    if public.centre is None or public.loadings is None:
        raise NotApplicable(f"{public.method} publishes no linear map.")
    return public.centre, public.loadings


def project(public: PublicParameters, X: Floats) -> Floats:
    """Return the components of original records, without noise."""
    centre, loadings = get_centre_and_loadings(public)
    return (X - centre) @ loadings  # (n, s)


def invert(public: PublicParameters, Z: Floats) -> Floats:
    """Return the records with these components, with the dropped directions at the centre."""
    centre, loadings = get_centre_and_loadings(public)
    return centre + Z @ np.linalg.pinv(loadings)  # (n, d)


def compute_components(view: AttackerView) -> Floats:
    """Return the noisy components of a release that was published in any space."""
    return convert_to_components(view.public, view.Y)


def convert_to_components(public: PublicParameters, Y: Floats) -> Floats:
    """Return the noisy components of released rows, in whatever space these are published."""
    if public.space == "original":
        # Y = centre + Z pinv(L), and the pseudo-inverse of pinv(L) is L itself.
        return project(public, Y)
    return Y  # (n, s)


def find_score_ranges(public: PublicParameters) -> Floats | None:
    """Return the interval that scores were moved to before noise was added, (s, 2).

    It follows from the published range of the noisy scores. None if the release publishes none.
    """
    if public.ranges is None or public.scales is None or public.grid is None:
        return None
    if public.law not in SAMPLED_DISTRIBUTIONS:
        return None
    nu = public.facts.get("nu")
    distribution = find_distribution(public.law, None if nu is None else float(nu))
    return invert_limits(distribution, public.ranges, public.scales, public.grid)


def noise_variance(public: PublicParameters) -> Floats:
    """Return the variance of the noise in each component."""
    if public.scales is None or public.law not in SAMPLED_DISTRIBUTIONS:
        raise NotApplicable(f"{public.method} publishes no known noise distribution.")
    nu = public.facts.get("nu")
    variance = find_distribution(public.law, None if nu is None else float(nu)).variance
    if not math.isfinite(variance):
        raise NotApplicable(f"The noise of {public.method} has no variance.")
    return variance * public.scales**2  # (s,)
