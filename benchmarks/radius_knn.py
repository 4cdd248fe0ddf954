"""RadiusKNN against scikit-learn's classifier with the same radius and weights, by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.release import PublicParameters

CLASSES = 10
NOISE_B = 0.2
MIN_SPEED_RATIO = 1.5


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare predictions with scikit-learn."""
    from ppdm_core.miners import MINERS

    n, s, query_count = (400, 4, 20) if small else (100_000, 50, 200)
    rows, label, queries = make_tables(n, s, query_count)
    public = PublicParameters("noise", "components", (), law="laplace", scales=np.full(s, NOISE_B))
    ours = MINERS["radius_knn"].from_public(public, moments="consistent").fit(rows, label)
    peer = make_peer(ours.squared_radius).fit(rows, label)
    report = ours.report(queries)
    different = int(np.count_nonzero(report.answers != peer.predict(queries)))
    yield [
        Comparison(
            "radius_knn",
            Side(f"{query_count} queries to {n:,} x {s}", lambda: ours.predict(queries)),
            Side("scikit-learn RadiusNeighborsClassifier, brute", lambda: peer.predict(queries)),
            at_least=MIN_SPEED_RATIO,
            is_speed=True,
            figures=(Figure("Queries with different predictions", different, 0.0),),
            notes=(f"A ball holds {report.mean_neighbours:,.0f} rows on average.",),
        )
    ]


def make_tables(n: int, s: int, query_count: int) -> tuple[Floats, Ints, Floats]:
    """Return noisy rows in ten clusters, their classes, and queries without noise."""
    rng = np.random.default_rng(1)
    centres = rng.random((CLASSES, s))
    label = rng.integers(0, CLASSES, n + query_count)
    X = centres[label] + rng.normal(0.0, 0.1, (n + query_count, s))
    return X[:n] + rng.laplace(0.0, NOISE_B, (n, s)), label[:n], X[n:]


def make_peer(squared_radius: float) -> Any:
    """Return the classifier of scikit-learn with the same radius and weights."""
    from sklearn.neighbors import RadiusNeighborsClassifier

    # A query without a neighbour is an outlier for scikit-learn; this table has none.
    return RadiusNeighborsClassifier(
        radius=squared_radius**0.5,
        weights=compute_inverse_squares,
        algorithm="brute",
        outlier_label="most_frequent",
    )


def compute_inverse_squares(distances: Any) -> Any:
    """Return the weights 1/d² of all neighbours."""
    weights = np.empty(len(distances), dtype=object)
    for i, d in enumerate(distances):
        weights[i] = 1.0 / d**2
    return weights
