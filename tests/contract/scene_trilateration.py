"""Distances kept up to a scale and a little noise, and an insider who knows some rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.random_orthogonal import random_orthogonal

N, D, KNOWN = 150, 4, 20


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = np.clip(0.7 * rng.random((N, D)) + 0.3 * rng.random((N, 1)), 0.0, 1.0)
    Y = 0.8 * X @ random_orthogonal(D, rng) + 0.3 + rng.normal(0.0, 0.005, (N, D))
    columns = tuple(f"dimension_{j + 1}" for j in range(D))
    public = PublicParameters("nonmetric_mds", "embedded", columns)
    return {"X": X, "Y": Y, "public": public, "known": KNOWN}
