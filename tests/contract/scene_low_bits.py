"""Wide Laplace noise as numpy draws it, which hides values but not their last bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.types import Public

N, D, SCALE = 150, 8, 4.0


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = rng.random((N, D))
    public = Public(
        method="textbook_noise",
        space="original",
        columns=tuple(f"x{j}" for j in range(D)),
        law="laplace",
        scales=np.full(D, SCALE),
    )
    return {"X": X, "Y": X + rng.laplace(0.0, SCALE, X.shape), "public": public}
