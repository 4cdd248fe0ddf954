"""``nonmetric_mds`` against scikit-learn's non-metric MDS, which starts from the same layout.

The final stress and the memory have limits of their own. The least stress belongs to the table,
not to the descent, so that its limit is for the first 1,000 records of optdigits_train.csv. Those
of scikit-learn end above it from every start; they are shown beside it. Without that file (folder
PPDM_DATA) theirs is the table, and neither stress nor memory of a full layout has a limit.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import peak
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._nonmetric import compute_classical_start, descend, rank_dissimilarities
from ppdm_core.sanitizers.nonmetric_mds import NonmetricMds

FOLDER = Path(os.environ.get("PPDM_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLE = FOLDER / "optdigits_train.csv"
GOOD = 0.042  # stress that our side goes to
DIMENSIONS = 10
COLUMNS = 20  # of the large table
LANDMARKS = 300
COPIES = 4  # of a record that one more record may cost


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    table = digits(small)
    X = table[:1000]
    path, theirs = laid_out(X, 300), peer_stress(X)
    steps = max(1, int(np.argmax(path <= GOOD)))
    figures = memory_of_placement((100, 200) if small else (25_000, 50_000, 100_000))
    if small or TABLE.is_file():
        figures += [Figure("Final stress", float(path[-1]), 0.038), *memory_of_layout(table)]
    other = laid_out(bundled(small), 300)[-1]
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
            figures=tuple(figures),
            notes=(
                f"Our layout ends at stress {path[-1]:.4f}, the peer's at {theirs:.4f}.",
                f"The digits of scikit-learn, without a limit: ours ends at {other:.4f}.",
            ),
        )
    ]


def digits(small: bool) -> Floats:
    """Distinct records."""
    if small or not TABLE.is_file():
        return bundled(small)
    return np.loadtxt(TABLE, delimiter=",", skiprows=1)[:, :-1]


def bundled(small: bool) -> Floats:
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data[: 60 if small else 1000], dtype=np.float64)


def memory_of_layout(table: Floats) -> list[Figure]:
    """All records laid out together."""
    n, d = table.shape
    return [
        Figure(f"MB, {n:,} x {d} to {p} dimensions", peak(released, table, p, n) / 1e6, 2000.0)
        for p in ((DIMENSIONS, d - 1) if n > 1000 else (DIMENSIONS,))
    ]


def memory_of_placement(sizes: tuple[int, ...]) -> list[Figure]:
    """What one more record costs where most are placed by landmarks: the same at every size."""
    peaks = [peak(placed, n) for n in sizes]
    added = np.diff(peaks) / np.diff(sizes)
    limit = COPIES * COLUMNS * 8.0
    return [
        Figure(f"Bytes per record, {a:,} to {b:,} records ({top / 1e6:.0f} MB)", float(cost), limit)
        for a, b, top, cost in zip(sizes[:-1], sizes[1:], peaks[1:], added, strict=True)
    ]


def placed(n: int) -> None:
    released(np.random.default_rng(1).random((n, COLUMNS)), DIMENSIONS, min(n // 2, LANDMARKS))


def released(X: Floats, dimensions: int, landmarks: int) -> None:
    rows = ArrayRows(Schema(tuple(Numeric(f"x{i}", 0.0, 16.0) for i in range(X.shape[1]))), X)
    method = NonmetricMds(dimensions=dimensions, landmarks=landmarks, scale="none")
    method.sanitize(rows, Noise(bytes(32)), method.fit(rows))


def laid_out(X: Floats, steps: int) -> Floats:
    """The stress after every step."""
    from scipy.spatial.distance import pdist

    order = rank_dissimilarities(pdist(X), "secondary")
    return descend(compute_classical_start(X, DIMENSIONS), order, 1e-4, steps)[1]


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
    error = d - rank_dissimilarities(pdist(X), "secondary").fit(d)
    return float(np.sqrt(error @ error / (d @ d)))
