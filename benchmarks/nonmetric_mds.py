"""``nonmetric_mds`` against scikit-learn's non-metric MDS, which starts from the same layout.

The final stress and the memory have limits of their own. The lowest possible stress depends on the
table, so its limit holds for the first 1,000 records of optdigits_train.csv. The digits of
scikit-learn end above that limit from every start; their stress is reported in addition. Without
the file (folder PPDM_DATA) the digits of scikit-learn are the table, and neither the stress nor the
memory of a full layout has a limit.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import measure_peak_memory
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._nonmetric import compute_classical_start, descend, rank_dissimilarities
from ppdm_core.sanitizers.nonmetric_mds import NonmetricMds

DATA_FOLDER = Path(os.environ.get("PPDM_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLE_PATH = DATA_FOLDER / "optdigits_train.csv"
TARGET_STRESS = 0.042  # at which the timed layout stops
DIMENSIONS = 10
PLACED_COLUMNS = 20  # of the table for placement by landmarks
LANDMARKS = 300
MAX_COPIES_PER_RECORD = 4  # memory that one more record may cost


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare the descent with scikit-learn."""
    table = load_table(small)
    X = table[:1000]
    path, theirs = compute_stress_path(X, 300), compute_peer_stress(X)
    steps = max(1, int(np.argmax(path <= TARGET_STRESS)))
    figures = measure_placement_memory((100, 200) if small else (25_000, 50_000, 100_000))
    if small or TABLE_PATH.is_file():
        figures += [Figure("Final stress", float(path[-1]), 0.038), *measure_layout_memory(table)]
    other = compute_stress_path(load_bundled_digits(small), 300)[-1]
    yield [
        Comparison(
            "nonmetric_mds",
            Side(
                f"{len(X):,} digits to {DIMENSIONS} dimensions, "
                f"to stress {TARGET_STRESS} ({steps} steps)",
                lambda: compute_stress_path(X, steps),
            ),
            Side(
                "scikit-learn MDS, non-metric, classical start, to its end",
                lambda: lay_out_with_scikit_learn(X),
            ),
            is_speed=True,
            at_least=50,
            figures=tuple(figures),
            notes=(
                f"Our layout ends at stress {path[-1]:.4f}, the peer's at {theirs:.4f}.",
                f"The digits of scikit-learn, without a limit: ours ends at {other:.4f}.",
            ),
        )
    ]


def load_table(small: bool) -> Floats:
    """Return distinct records."""
    if small or not TABLE_PATH.is_file():
        return load_bundled_digits(small)
    return np.loadtxt(TABLE_PATH, delimiter=",", skiprows=1)[:, :-1]


def load_bundled_digits(small: bool) -> Floats:
    """Return the digits of scikit-learn."""
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data[: 60 if small else 1000], dtype=np.float64)


def measure_layout_memory(table: Floats) -> list[Figure]:
    """Return the memory of layouts of all records."""
    n, d = table.shape
    return [
        Figure(
            f"MB, {n:,} x {d} to {p} dimensions",
            measure_peak_memory(release_table, table, p, n) / 1e6,
            2000.0,
        )
        for p in ((DIMENSIONS, d - 1) if n > 1000 else (DIMENSIONS,))
    ]


def measure_placement_memory(sizes: tuple[int, ...]) -> list[Figure]:
    """Return the memory per added record when most records are placed by landmarks.

    It is the same at every size.
    """
    peaks = [measure_peak_memory(place_records, n) for n in sizes]
    added = np.diff(peaks) / np.diff(sizes)
    limit = MAX_COPIES_PER_RECORD * PLACED_COLUMNS * 8.0
    return [
        Figure(f"Bytes per record, {a:,} to {b:,} records ({top / 1e6:.0f} MB)", float(cost), limit)
        for a, b, top, cost in zip(sizes[:-1], sizes[1:], peaks[1:], added, strict=True)
    ]


def place_records(n: int) -> None:
    """Release random records, most of them placed by landmarks."""
    release_table(
        np.random.default_rng(1).random((n, PLACED_COLUMNS)), DIMENSIONS, min(n // 2, LANDMARKS)
    )


def release_table(X: Floats, dimensions: int, landmarks: int) -> None:
    """Fit and release a table."""
    rows = ArrayRows(Schema(tuple(Numeric(f"x{i}", 0.0, 16.0) for i in range(X.shape[1]))), X)
    method = NonmetricMds(dimensions=dimensions, landmarks=landmarks, scale="none")
    method.sanitize(rows, Noise(bytes(32)), method.fit(rows))


def compute_stress_path(X: Floats, steps: int) -> Floats:
    """Return the stress after every step."""
    from scipy.spatial.distance import pdist

    order = rank_dissimilarities(pdist(X), "secondary")
    return descend(compute_classical_start(X, DIMENSIONS), order, 1e-4, steps)[1]


def lay_out_with_scikit_learn(X: Floats) -> Floats:
    """Return the layout of scikit-learn."""
    from sklearn.manifold import MDS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about defaults that will change
        mds = MDS(DIMENSIONS, metric_mds=False, n_init=1, init="classical_mds", random_state=0)
        return np.asarray(mds.fit_transform(X))


def compute_peer_stress(X: Floats) -> float:
    """Return stress-1 of the peer's layout, computed as for our own."""
    from scipy.spatial.distance import pdist

    d = pdist(lay_out_with_scikit_learn(X))
    error = d - rank_dissimilarities(pdist(X), "secondary").fit(d)
    return float(np.sqrt(error @ error / (d @ d)))
