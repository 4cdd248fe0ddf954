"""A rotation with a secret offset, and an insider who knows people but not their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.random_orthogonal import random_orthogonal

N, D, RECORDS = 150, 5, 12


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = np.clip(0.7 * rng.random((N, D)) + 0.3 * rng.random((N, 1)), 0.0, 1.0)
    Y = X @ random_orthogonal(D, rng) + rng.uniform(-1.0, 1.0, D)
    columns = tuple(f"rotated_{j + 1}" for j in range(D))
    public = PublicParameters("random_rotation", "rotated", columns, preserves_distances=True)
    return {"X": X, "Y": Y, "public": public, "known": RECORDS}
