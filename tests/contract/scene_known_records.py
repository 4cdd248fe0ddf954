"""A rotation with a secret offset, and an insider who knows people but not their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import Public
from ppdm_core.numerics.random_orthogonal import haar

N, D, RECORDS = 150, 5, 12


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = np.clip(0.7 * rng.random((N, D)) + 0.3 * rng.random((N, 1)), 0.0, 1.0)
    Y = X @ haar(D, rng) + rng.uniform(-1.0, 1.0, D)
    columns = tuple(f"rotated_{j + 1}" for j in range(D))
    public = Public("random_rotation", "rotated", columns, preserves_distances=True)
    return {"X": X, "Y": Y, "public": public, "known": RECORDS}
