"""Neighbourhoods before and after, with their ties, against two searches of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import peak
from ppdm_core.metrics import ReleaseComparison
from ppdm_core.metrics._neighbourhoods import NEIGHBOURS, find_neighbourhoods
from ppdm_core.model.release import PublicParameters

MEMORY_MB = 250.0  # both tables are 16 MB; all distances would be 20,000


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    """All neighbours of every record, not of a sample as in an audit."""
    n, d = (400, 5) if small else (50_000, 20)
    memory = peak(ours, n, d) / 1e6
    yield [
        Comparison(
            "neighbourhoods",
            Side(f"who stays near whom, of {n:,} x {d}", lambda: ours(n, d)),
            Side("scikit-learn's NearestNeighbors on both, and sets", lambda: peer(n, d)),
            is_speed=True,
            figures=(Figure("peak memory in MB", memory, at_most=MEMORY_MB),),
        )
    ]


def tables(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d))
    return X, X + 0.3 * rng.standard_normal((n, d))


def ours(n: int, d: int) -> float:
    X, Y = tables(n, d)
    label = np.zeros(n, dtype=np.int32)
    public = PublicParameters("noise", "original", tuple(f"x{j}" for j in range(d)))
    preserved = find_neighbourhoods(ReleaseComparison(X, label, Y, public), np.arange(n), NEIGHBOURS).preserved
    assert preserved is not None
    return float(preserved.mean())


def peer(n: int, d: int) -> float:
    from sklearn.neighbors import NearestNeighbors

    near = [
        NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute")
        .fit(Z)
        .kneighbors(return_distance=False)
        for Z in tables(n, d)
    ]
    both = [len(np.intersect1d(a, b, assume_unique=True)) for a, b in zip(*near, strict=True)]
    return float(np.mean(both)) / NEIGHBOURS
