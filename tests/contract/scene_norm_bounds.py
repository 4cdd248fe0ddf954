"""Records of one shape and many sizes: a projection shrinks all alike, and a few known tell how."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.sanitizers.random_projection import ratio_moments
from ppdm_core.types import Public

N, D, KEPT, KNOWN = 150, 8, 6, 20


def weak(rng: np.random.Generator) -> dict[str, Any]:
    shape = rng.uniform(0.3, 1.0, D)
    X = (0.9 * shape + 0.1 * rng.random((N, D))) * rng.uniform(0.1, 1.0, (N, 1))
    R = rng.standard_normal((D, KEPT))
    factor = float(np.sqrt(D / KEPT))
    R *= factor / np.linalg.norm(R, axis=0)
    public = Public(
        method="random_projection",
        space="rotated",
        columns=tuple(f"projected_{j}" for j in range(KEPT)),
        facts={
            "components": float(KEPT),
            "normalisation": "unbiased",
            "squared_distance_ratio_mean": ratio_moments(D, KEPT, factor)[0],
        },
    )
    return {"X": X, "Y": X @ R, "public": public, "known": KNOWN}
