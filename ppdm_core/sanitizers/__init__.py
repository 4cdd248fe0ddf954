"""All methods that perturb a table: one file per method, one line in the dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ppdm_core.sanitizers._sanitizer import Sanitizer
from ppdm_core.sanitizers.additive_noise import AdditiveNoise
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from ppdm_core.sanitizers.kde_resample import KdeResample
from ppdm_core.sanitizers.nonmetric_mds import NonmetricMds
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from ppdm_core.sanitizers.pipeline import Pipeline
from ppdm_core.sanitizers.random_projection import RandomProjection
from ppdm_core.sanitizers.random_rotation import RandomRotation
from ppdm_core.sanitizers.randomized_response import RandomizedResponse

SANITIZERS: dict[str, type[Sanitizer]] = {
    "pca_laplace": PcaLaplace,
    "additive_noise": AdditiveNoise,
    "random_rotation": RandomRotation,
    "random_projection": RandomProjection,
    "kde_resample": KdeResample,
    "dct_fuzzy": DctFuzzy,
    "nonmetric_mds": NonmetricMds,
    "randomized_response": RandomizedResponse,
    "pipeline": Pipeline,
}

__all__ = ["SANITIZERS", "Sanitizer", "make_sanitizer"]


def make_sanitizer(method: str, parameters: Mapping[str, Any]) -> Sanitizer:
    """Return a checked sanitizer, or raise a BadInput that names the parameter."""
    return SANITIZERS[method].from_parameters(parameters)
