"""``nonmetric_mds`` against scikit-learn's non-metric MDS, which starts from the same layout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Side
from ppdm_core.sanitizers._nonmetric import classical_start, descend, order_of
from ppdm_core.types import Floats

GOOD = 0.042  # stress that our side goes to
DIMENSIONS = 10


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    X = digits(60 if small else 1000)
    steps = steps_to(GOOD, X)
    final, theirs = laid_out(X, 300)[-1], peer_stress(X)
    yield [
        Comparison(
            "nonmetric_mds",
            Side(
                f"{len(X):,} digits to {DIMENSIONS} dimensions, to stress {GOOD} ({steps} steps)",
                lambda: laid_out(X, steps),
            ),
            Side("scikit-learn MDS, non-metric, classical start, to its end", lambda: peer(X)),
            is_speed=True,
            at_least=50,
            notes=(f"Our layout ends at stress {final:.4f}, the peer's at {theirs:.4f}.",),
        )
    ]


def digits(n: int) -> Floats:
    from sklearn.datasets import load_digits

    return np.unique(np.asarray(load_digits().data[:n], dtype=np.float64), axis=0)


def laid_out(X: Floats, steps: int) -> Floats:
    """The stress after every step."""
    from scipy.spatial.distance import pdist

    order = order_of(pdist(X), "secondary")
    return descend(classical_start(X, DIMENSIONS), order, 1e-4, steps)[1]


def steps_to(stress: float, X: Floats) -> int:
    path = laid_out(X, 300)
    return max(1, int(np.argmax(path <= stress)))


def peer(X: Floats) -> Floats:
    from sklearn.manifold import MDS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of defaults that will change
        mds = MDS(DIMENSIONS, metric_mds=False, n_init=1, init="classical_mds", random_state=0)
        return np.asarray(mds.fit_transform(X))


def peer_stress(X: Floats) -> float:
    """Stress-1 of the peer's layout, measured as our own."""
    from scipy.spatial.distance import pdist

    d = pdist(peer(X))
    error = d - order_of(pdist(X), "secondary").fit(d)
    return float(np.sqrt(error @ error / (d @ d)))
