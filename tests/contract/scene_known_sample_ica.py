"""A map that keeps no distance, of columns that are independent and far from normal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.types import Floats, Public

N, D, SAMPLE = 300, 3, 400
LEVELS = np.array([[0.3, 0.5, 0.9], [0.8, 0.5, 0.2], [0.4, 0.5, 0.8]])
SHARES = ((0.6, 0.3, 0.1), (0.7, 0.1, 0.2), (0.2, 0.65, 0.15))


def independent(rng: np.random.Generator, n: int) -> Floats:
    """Each column takes one of three values of its own, nearly."""
    drawn = [rng.choice(LEVELS[j], n, p=SHARES[j]) for j in range(D)]
    return np.clip(np.column_stack(drawn) + 0.01 * rng.standard_normal((n, D)), 0.0, 1.0)


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = independent(rng, N)
    columns = tuple(f"projected_{i + 1}" for i in range(D))
    return {
        "X": X,
        "Y": X @ rng.standard_normal((D, D)),
        "public": Public("random_projection", "rotated", columns),
        "sample": independent(rng, SAMPLE),
    }
