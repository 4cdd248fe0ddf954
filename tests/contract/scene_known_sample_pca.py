"""A rotation of people in unequal groups, and other people of the same population."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.haar import haar
from ppdm_core.types import Floats, Public

N, D, SAMPLE = 150, 4, 100
CENTRES = np.array(
    [[0.9, 0.2, 0.8, 0.5], [0.2, 0.9, 0.6, 0.3], [0.5, 0.3, 0.1, 0.9], [0.7, 0.8, 0.3, 0.1]]
)
SHARES = (0.45, 0.3, 0.15, 0.1)


def grouped(rng: np.random.Generator, n: int) -> Floats:
    near = CENTRES[rng.choice(len(CENTRES), n, p=SHARES)]
    return np.clip(near + 0.04 * rng.standard_normal((n, D)), 0.0, 1.0)


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = grouped(rng, N)
    columns = tuple(f"rotated_{i + 1}" for i in range(D))
    return {
        "X": X,
        "Y": X @ haar(D, rng).T,
        "public": Public("random_rotation", "rotated", columns, preserves_distances=True),
        "sample": grouped(rng, SAMPLE),
    }
