"""``additive_noise`` against plain numpy noise, which protects nobody."""

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

B = 0.3
LAWS = {"laplace": None, "logistic": None, "student_t": 4.0, "normal": None, "uniform": None}
TARGET = 1e6  # cells a second on one core, with digests and keyed bits


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    n, d = (200, 4) if small else (1_000_000, 20)
    X = np.random.default_rng(1).random((n, d))
    yield [
        Comparison(
            "additive_noise",
            Side(f"{n:,} x {d} cells, keyed by record and value", lambda: keyed(X), n * d),
            Side("numpy Laplace noise", lambda: plain(X), n * d),
            unit="cells",
            is_speed=True,
            notes=(f"Target {TARGET:,.0f} cells/s. {rates(X)}.",),
        )
    ]


def keyed(X: Floats, law: str = "laplace") -> None:
    schema = Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(X.shape[1])))
    method = AdditiveNoise(b=B, law=law, nu=LAWS[law])
    method.sanitize(ArrayRows(schema, X), Noise(bytes(32)), {})


def plain(X: Floats) -> None:
    X + np.random.default_rng(1).laplace(scale=B, size=X.shape)


def rates(X: Floats) -> str:
    """Cells per second of every law, once each."""
    found = []
    for law in LAWS:
        start = time.perf_counter()
        keyed(X, law)
        found.append(f"{law} {X.size / (time.perf_counter() - start):,.0f}")
    return "All laws, cells/s: " + ", ".join(found)
