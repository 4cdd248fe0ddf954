"""Every way to perturb a table. One file a method, one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ppdm_core.sanitizers._sanitizer import Sanitizer
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from ppdm_core.sanitizers.random_rotation import RandomRotation

SANITIZERS: dict[str, type[Sanitizer]] = {
    "pca_laplace": PcaLaplace,
    "random_rotation": RandomRotation,
}

__all__ = ["SANITIZERS", "Sanitizer", "make_sanitizer"]


def make_sanitizer(method: str, parameters: Mapping[str, Any]) -> Sanitizer:
    """A checked sanitizer, or a BadInput that names the parameter."""
    return SANITIZERS[method].from_parameters(parameters)
