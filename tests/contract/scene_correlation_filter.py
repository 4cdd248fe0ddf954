"""Columns that follow one number, under noise that hides each of them but not all."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import PublicParameters

N, D, SCALE = 150, 8, 0.04


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = 0.5 + np.outer(rng.uniform(-0.45, 0.45, N), np.where(np.arange(D) % 2, -1.0, 1.0))
    public = PublicParameters(
        method="additive_noise",
        space="original",
        columns=tuple(f"x{j}" for j in range(D)),
        centre=np.full(D, 0.5),
        loadings=np.eye(D),
        law="laplace",
        scales=np.full(D, SCALE),
    )
    return {"X": X, "Y": X + rng.laplace(0.0, SCALE, X.shape), "public": public}
