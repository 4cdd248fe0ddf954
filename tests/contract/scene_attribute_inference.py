"""Components with so little noise that the other values of a person find the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.contract import scene_membership


def weak(rng: np.random.Generator) -> dict[str, Any]:
    return scene_membership.weak(rng, b=0.005)
