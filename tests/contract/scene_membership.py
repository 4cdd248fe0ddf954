"""Components with so little noise that everybody is found, and people who are not in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import PublicParameters
from tests.contract.scene_source_record import D, people, schema


def weak(rng: np.random.Generator, b: float = 0.02) -> dict[str, Any]:
    who = people(300, rng)
    L = np.linalg.qr(rng.standard_normal((D, D)))[0]
    members = np.arange(150)
    return {
        "X": who.X,
        "Y": (who.X[members] - 0.5) @ L + rng.laplace(0.0, b, (150, D)),
        "label": who.label,
        "public": PublicParameters(
            method="pca_laplace",
            space="components",
            columns=tuple(f"component_{i}" for i in range(D)),
            centre=np.full(D, 0.5),
            loadings=L,
            law="laplace",
            scales=np.full(D, b),
        ),
        "schema": schema(),
        "source": members,
        "members": members,
        "known": 0,
    }
