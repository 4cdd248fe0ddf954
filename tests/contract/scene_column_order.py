"""Nearly all cosine coefficients in a secret order, and an outsider with one record."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import dct

from ppdm_core.types import Public

N, D, KEPT, SAMPLE = 150, 6, 5, 60


def people(rng: np.random.Generator, n: int) -> np.ndarray:
    """The last cosine coefficient is nearly a function of the others."""
    X = np.clip(0.6 * rng.random((n, D)) + 0.4 * rng.random((n, 1)), 0.0, 1.0)
    C = dct(X, type=2, norm="ortho", axis=1)
    C[:, -1] = 0.02 * rng.standard_normal(n)
    return np.clip(dct(C, type=3, norm="ortho", axis=1), 0.0, 1.0)


def weak(rng: np.random.Generator) -> dict[str, Any]:
    X = people(rng, N)
    Y = dct(X, type=2, norm="ortho", axis=1)[:, rng.permutation(KEPT)]
    columns = tuple(f"coefficient_{j + 1}" for j in range(KEPT))
    public = Public("dct_fuzzy", "rotated", columns, facts={"transform": "orthonormal DCT-II"})
    return {
        "X": X,
        "Y": Y,
        "public": public,
        "known": 1,
        "sample": people(rng, SAMPLE),
    }
