"""RadiusKNN against scikit-learn's classifier with the same radius and weights, by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.release import Public

CLASSES = 10
B = 0.2
AT_LEAST = 1.5


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    from ppdm_core.miners import MINERS

    n, s, asked = (400, 4, 20) if small else (100_000, 50, 200)
    rows, label, queries = tables(n, s, asked)
    public = Public("noise", "components", (), law="laplace", scales=np.full(s, B))
    ours = MINERS["radius_knn"].from_public(public, moments="consistent").fit(rows, label)
    peer = scikit_learn(ours.squared_radius).fit(rows, label)
    report = ours.report(queries)
    different = int(np.count_nonzero(report.answers != peer.predict(queries)))
    yield [
        Comparison(
            "radius_knn",
            Side(f"{asked} queries to {n:,} x {s}", lambda: ours.predict(queries)),
            Side("scikit-learn RadiusNeighborsClassifier, brute", lambda: peer.predict(queries)),
            at_least=AT_LEAST,
            is_speed=True,
            figures=(Figure("Queries that the two answer differently", different, 0.0),),
            notes=(f"A ball holds {report.mean_neighbours:,.0f} rows on average.",),
        )
    ]


def tables(n: int, s: int, asked: int) -> tuple[Floats, Ints, Floats]:
    """Ten clusters of records in Laplace noise, and records without noise."""
    rng = np.random.default_rng(1)
    centres = rng.random((CLASSES, s))
    label = rng.integers(0, CLASSES, n + asked)
    X = centres[label] + rng.normal(0.0, 0.1, (n + asked, s))
    return X[:n] + rng.laplace(0.0, B, (n, s)), label[:n], X[n:]


def scikit_learn(squared_radius: float) -> Any:
    from sklearn.neighbors import RadiusNeighborsClassifier

    # All balls of this table are as in ours: a query without a neighbour is an outlier there.
    return RadiusNeighborsClassifier(
        radius=squared_radius**0.5,
        weights=inverse_squares,
        algorithm="brute",
        outlier_label="most_frequent",
    )


def inverse_squares(distances: Any) -> Any:
    weights = np.empty(len(distances), dtype=object)
    for i, d in enumerate(distances):
        weights[i] = 1.0 / d**2
    return weights
