"""Records in narrow groups: a sample shows the groups, and the noise cannot hide which is whose."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import PublicParameters

N, D, GROUPS, SCALE = 150, 8, 5, 0.08


def weak(rng: np.random.Generator) -> dict[str, Any]:
    centres = rng.uniform(0.1, 0.9, (GROUPS, D))

    def people(n: int) -> np.ndarray:
        spread = centres[rng.integers(0, GROUPS, n)] + rng.normal(0.0, 0.01, (n, D))
        return np.clip(spread, 0.0, 1.0)

    X = people(N)
    public = PublicParameters(
        method="additive_noise",
        space="original",
        columns=tuple(f"x{j}" for j in range(D)),
        centre=np.full(D, 0.5),
        loadings=np.eye(D),
        law="laplace",
        scales=np.full(D, SCALE),
    )
    Y = X + rng.laplace(0.0, SCALE, X.shape)
    return {"X": X, "Y": Y, "public": public, "sample": people(50)}
