"""The nearest released row of everybody, against scikit-learn's search by brute force.

Its memory has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import peak
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, RecordSet
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema

MOST_MB = 1000.0


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    n, d = (500, 4) if small else (100_000, 20)
    people, rows = tables(n, d)
    size = f"{n:,} against {n:,} x {d}"
    yield [
        Comparison(
            "record_linkage",
            Side(f"nearest, {size}", lambda: nearest(people, rows)),
            Side("scikit-learn NearestNeighbors, brute", lambda: brute(people, rows)),
            figures=(Figure(f"MB for nearest and one-to-one, {size}", memory(n, d), MOST_MB),),
        )
    ]


def tables(n: int, d: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(1)
    X = rng.random((n, d))
    return X, rng.permutation(X) + rng.laplace(0.0, 0.1, (n, d))


def nearest(people: Floats, rows: Floats) -> None:
    from ppdm_core.attacks._neighbour_search import find_nearest_rows

    find_nearest_rows(people, rows, 1)


def brute(people: Floats, rows: Floats) -> None:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(rows)
    search.kneighbors(people, return_distance=False)


def memory(n: int, d: int) -> float:
    return peak(attack, n, d) / 1e6


def attack(n: int, d: int) -> None:
    people, rows = tables(n, d)
    labels = np.zeros(n, dtype=np.int32)
    view = AttackerView(
        Y=rows,
        label=labels,
        public=PublicParameters("copy", "original", ()),
        schema=Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d))),
        epsilon=0.1,
        targets=RecordSet(people, np.zeros((n, 0), dtype=np.int32), labels),
    )
    RecordLinkage().attack(view, np.random.default_rng(1))
