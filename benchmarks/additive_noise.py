"""``additive_noise`` against plain numpy noise, which has no key and no grid."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Side
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.additive_noise import AdditiveNoise

NOISE_B = 0.3
NU_BY_LAW = {"laplace": None, "logistic": None, "student_t": 4.0, "normal": None, "uniform": None}
TARGET_CELLS_PER_SECOND = 1e6  # on one core, with digests and keyed bits


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare keyed noise with numpy noise."""
    n, d = (200, 4) if small else (1_000_000, 20)
    X = np.random.default_rng(1).random((n, d))
    yield [
        Comparison(
            "additive_noise",
            Side(
                f"{n:,} x {d} cells, keyed by record and value", lambda: add_keyed_noise(X), n * d
            ),
            Side("numpy Laplace noise", lambda: add_numpy_noise(X), n * d),
            unit="cells",
            is_speed=True,
            notes=(f"Target {TARGET_CELLS_PER_SECOND:,.0f} cells/s. {measure_rates(X)}.",),
        )
    ]


def add_keyed_noise(X: Floats, law: str = "laplace") -> None:
    """Release a table with keyed noise."""
    schema = Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(X.shape[1])))
    method = AdditiveNoise(b=NOISE_B, law=law, nu=NU_BY_LAW[law])
    method.sanitize(ArrayRows(schema, X), Noise(bytes(32)), {})


def add_numpy_noise(X: Floats) -> None:
    """Add numpy noise to a table."""
    X + np.random.default_rng(1).laplace(scale=NOISE_B, size=X.shape)


def measure_rates(X: Floats) -> str:
    """Return the cells per second of every noise distribution, measured once."""
    found = []
    for law in NU_BY_LAW:
        start = time.perf_counter()
        add_keyed_noise(X, law)
        found.append(f"{law} {X.size / (time.perf_counter() - start):,.0f}")
    return "All laws, cells/s: " + ", ".join(found)
