"""The nearest released row of every record, against scikit-learn's brute-force search.

Its memory has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import measure_peak_memory
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, RecordSet
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema

MAX_MEMORY_MB = 1000.0


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare the search with scikit-learn."""
    n, d = (500, 4) if small else (100_000, 20)
    targets, rows = make_tables(n, d)
    size = f"{n:,} against {n:,} x {d}"
    yield [
        Comparison(
            "record_linkage",
            Side(f"nearest, {size}", lambda: search_nearest(targets, rows)),
            Side("scikit-learn NearestNeighbors, brute", lambda: search_brute_force(targets, rows)),
            figures=(
                Figure(
                    f"MB for nearest and one-to-one, {size}",
                    measure_attack_memory(n, d),
                    MAX_MEMORY_MB,
                ),
            ),
        )
    ]


def make_tables(n: int, d: int) -> tuple[Floats, Floats]:
    """Return records and their noisy rows in another order."""
    rng = np.random.default_rng(1)
    X = rng.random((n, d))
    return X, rng.permutation(X) + rng.laplace(0.0, 0.1, (n, d))


def search_nearest(targets: Floats, rows: Floats) -> None:
    """Find the nearest row of every record."""
    from ppdm_core.numerics.neighbours import find_nearest_rows

    find_nearest_rows(targets, rows, 1)


def search_brute_force(targets: Floats, rows: Floats) -> None:
    """Find the nearest rows with scikit-learn."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(rows)
    search.kneighbors(targets, return_distance=False)


def measure_attack_memory(n: int, d: int) -> float:
    """Return the peak memory of the attack in MB."""
    return measure_peak_memory(attack, n, d) / 1e6


def attack(n: int, d: int) -> None:
    """Run the attack on all records."""
    targets, rows = make_tables(n, d)
    labels = np.zeros(n, dtype=np.int32)
    view = AttackerView(
        Y=rows,
        label=labels,
        public=PublicParameters("copy", "original", ()),
        schema=Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d))),
        epsilon=0.1,
        targets=RecordSet(targets, np.zeros((n, 0), dtype=np.int32), labels),
    )
    RecordLinkage().attack(view, np.random.default_rng(1))
