"""Neighbourhoods before and after a release, with ties, against two searches of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import measure_peak_memory
from ppdm_core.metrics import ReleaseComparison
from ppdm_core.metrics._neighbourhoods import NEIGHBOURS, find_neighbourhoods
from ppdm_core.model.release import PublicParameters

MAX_MEMORY_MB = 250.0  # both tables are 16 MB; all distances would be 20,000


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare the neighbours of every record; an audit takes a sample of records."""
    n, d = (400, 5) if small else (50_000, 20)
    memory = measure_peak_memory(measure_preserved, n, d) / 1e6
    yield [
        Comparison(
            "neighbourhoods",
            Side(f"preserved neighbours of {n:,} x {d}", lambda: measure_preserved(n, d)),
            Side(
                "scikit-learn's NearestNeighbors on both, and sets",
                lambda: measure_with_scikit_learn(n, d),
            ),
            is_speed=True,
            figures=(Figure("peak memory in MB", memory, at_most=MAX_MEMORY_MB),),
        )
    ]


def make_tables(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a table and a noisy copy."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d))
    return X, X + 0.3 * rng.standard_normal((n, d))


def measure_preserved(n: int, d: int) -> float:
    """Return the mean share of neighbours that remain."""
    X, Y = make_tables(n, d)
    label = np.zeros(n, dtype=np.int32)
    public = PublicParameters("noise", "original", tuple(f"x{j}" for j in range(d)))
    preserved = find_neighbourhoods(
        ReleaseComparison(X, label, Y, public), np.arange(n), NEIGHBOURS
    ).preserved
    assert preserved is not None
    return float(preserved.mean())


def measure_with_scikit_learn(n: int, d: int) -> float:
    """Return the same share with scikit-learn."""
    from sklearn.neighbors import NearestNeighbors

    near = [
        NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute")
        .fit(Z)
        .kneighbors(return_distance=False)
        for Z in make_tables(n, d)
    ]
    both = [len(np.intersect1d(a, b, assume_unique=True)) for a, b in zip(*near, strict=True)]
    return float(np.mean(both)) / NEIGHBOURS
