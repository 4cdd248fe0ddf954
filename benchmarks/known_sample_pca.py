"""``known_sample_pca``: its choice of signs against the clock, at the size of the paper.

The paper reports 1.24e5 seconds for the same search (Matlab, 2006).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Side
from ppdm_core.attacks.known_sample_pca import (
    MatchedAxes,
    choose_exhaustive_signs,
    choose_hybrid_signs,
    compute_axis_evidence,
    match_axes,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.random_orthogonal import random_orthogonal

MINUTE, SECOND = 60.0, 1.0
JOINT = 8  # signs that the hybrid tries jointly in a standard audit


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    d, n, p = (4, 300, 40) if small else (12, 5_000, 250)
    axes = rotated(d, n, p)
    yield [
        Comparison(
            "known_sample_pca, all signs",
            Side(f"{2**d:,} choices on {n:,} + {p} records", lambda: exhaustive(axes)),
            Side("one minute by the clock", lambda: time.sleep(0 if small else MINUTE)),
            at_most=1,
        ),
        Comparison(
            "known_sample_pca, hybrid",
            Side(f"{d} signs on {n:,} + {p} records", lambda: hybrid(axes)),
            Side("one second by the clock", lambda: time.sleep(0 if small else SECOND)),
            at_most=1,
        ),
    ]


def rotated(d: int, n: int, p: int) -> MatchedAxes:
    """Normal records, as in the paper, with a mean that tells the signs."""
    rng = np.random.default_rng(1)
    scales = 1.3 ** -np.arange(d)
    X = (rng.standard_normal((n + p, d)) + 0.5) * scales @ random_orthogonal(d, rng)
    public = PublicParameters(
        "random_rotation", "rotated", tuple(f"y{i}" for i in range(d)), preserves_distances=True
    )
    view = AttackerView(
        Y=X[p:] @ random_orthogonal(d, rng),
        label=np.zeros(n, dtype=np.int32),
        public=public,
        schema=Schema(tuple(Numeric(f"x{i}", -9.0, 9.0) for i in range(d))),
        epsilon=0.1,
        sample=X[:p],
    )
    return match_axes(view, X[:p])


def exhaustive(axes: MatchedAxes) -> Floats:
    return choose_exhaustive_signs(axes, len(axes.B), np.random.default_rng(0))


def hybrid(axes: MatchedAxes) -> Floats:
    """With the evidence that it starts from."""
    return choose_hybrid_signs(axes, compute_axis_evidence(axes), JOINT, np.random.default_rng(0))
