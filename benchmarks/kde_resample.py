"""``kde_resample`` against numpy's choice of records and beta noise, which have no key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Side
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.kde_resample import KdeResample

TARGET_CELLS_PER_SECOND = 1e6  # per core, including the keyed draw


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare keyed resampling with numpy."""
    n, d = (500, 4) if small else (1_000_000, 20)
    rng = np.random.default_rng(1)
    X, label = rng.random((n, d)), rng.integers(0, 3, n).astype(np.int32)
    yield [
        Comparison(
            "kde_resample",
            Side(
                f"fit and sanitize {n:,} x {d} in three classes",
                lambda: resample_keyed(X, label),
                n * d,
            ),
            Side(
                "numpy: choice within classes, beta noise",
                lambda: resample_with_numpy(X, label),
                n * d,
            ),
            unit="cells",
            is_speed=True,
            notes=(
                f"{measure_rate(X, label):,.0f} cells per second of CPU; "
                f"target {TARGET_CELLS_PER_SECOND:,.0f}.",
            ),
        )
    ]


def measure_rate(X: Floats, label: Codes) -> float:
    """Return cells per second of CPU time."""
    start = time.process_time()
    resample_keyed(X, label)
    return X.size / (time.process_time() - start)


def resample_keyed(X: Floats, label: Codes) -> None:
    """Fit and release a table."""
    columns = tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(X.shape[1]))
    rows = ArrayRows(Schema(columns, label=Categorical("label", ("a", "b", "c"))), X, label)
    method = KdeResample()
    method.sanitize(rows, Noise(bytes(32)), method.fit(rows))


def resample_with_numpy(X: Floats, label: Codes) -> None:
    """Resample each class with numpy and add beta noise."""
    rng = np.random.default_rng(1)
    for code in range(3):
        records = X[label == code]
        h = records.std(axis=0, ddof=1)
        drawn = records[rng.integers(0, len(records), len(records))]
        np.clip(drawn + h * (2 * rng.beta(2, 2, drawn.shape) - 1), 0.0, 1.0)
