"""Columns with so little noise that half of them are enough to find a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import PublicParameters
from tests.contract.scene_source_record import D, people, schema


def weak(rng: np.random.Generator, b: float = 0.003) -> dict[str, Any]:
    who = people(300, rng)
    members = np.arange(150)
    return {
        "X": who.X,
        "Y": who.X[members] + rng.laplace(0.0, b, (150, D)),
        "label": who.label,
        "public": PublicParameters(
            method="additive_noise",
            space="original",
            columns=schema().names,
            centre=np.full(D, 0.5),
            loadings=np.eye(D),
            law="laplace",
            scales=np.full(D, b),
        ),
        "schema": schema(),
        "source": members,
        "members": members,
        "known": 0,
    }
