"""Sixteen releases of the same people, each with noise that hides them well enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.contract import scene_linkability
from tests.contract.scene_source_record import D

VERSIONS = 16


def weak(rng: np.random.Generator) -> dict[str, Any]:
    scene = scene_linkability.weak(rng, b=0.1)
    X = scene["X"][scene["members"]]
    scene["earlier"] = tuple(X + rng.laplace(0.0, 0.1, (VERSIONS - 1, len(X), D)))
    return scene
