"""The published linear map: what anybody can compute from ``Public`` alone.

Loadings are published rounded, so they are inverted with ``pinv``, never by transposing.
"""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import Public
from ppdm_core.numerics.distributions import DRAWN, law_named


def has_map(public: Public) -> bool:
    return public.centre is not None and public.loadings is not None


def has_same_map(one: Public, other: Public) -> bool:
    if not has_map(one) or not has_map(other):
        return has_map(one) == has_map(other) and one.space == other.space
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("centre", "loadings")
    )


def has_noise(public: Public) -> bool:
    return public.scales is not None


def centre_and_loadings(public: Public) -> tuple[Floats, Floats]:
    if public.centre is None or public.loadings is None:
        raise NotApplicable(f"{public.method} publishes no linear map.")
    return public.centre, public.loadings


def project(public: Public, X: Floats) -> Floats:
    """Noise-free components of original records."""
    centre, loadings = centre_and_loadings(public)
    return (X - centre) @ loadings  # (n, s)


def invert(public: Public, Z: Floats) -> Floats:
    """The records that components stand for when the dropped directions are at the centre."""
    centre, loadings = centre_and_loadings(public)
    return centre + Z @ np.linalg.pinv(loadings)  # (n, d)


def components_of(view: AttackerView) -> Floats:
    """The noisy components behind a release, in whichever space it was published."""
    if view.public.space == "original":
        # Y = centre + Z pinv(L), and the pseudo-inverse of pinv(L) is L itself.
        return project(view.public, view.Y)
    return view.Y  # (n, s)


def noise_variance(public: Public) -> Floats:
    """Variance of the noise in each component."""
    if public.scales is None or public.law not in DRAWN:
        raise NotApplicable(f"{public.method} publishes no noise law that is known here.")
    nu = public.facts.get("nu")
    variance = law_named(public.law, None if nu is None else float(nu)).variance
    if not math.isfinite(variance):
        raise NotApplicable(f"The noise of {public.method} has no variance.")
    return variance * public.scales**2  # (s,)
