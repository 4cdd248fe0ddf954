"""Keyed grid noise against OpenDP's Laplace noise, which is safe on floats too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import Comparison, Side
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise, add_laplace_noise, grid_step

SCALE = 0.3


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    rows, columns = (200, 4) if small else (1_000_000, 20)
    cells = 200 if small else 100_000
    X = np.random.default_rng(1).random((rows, columns))
    ours = Side(
        f"{rows:,} x {columns} cells, keyed by record and value",
        lambda: keyed_noise(X),
        rows * columns,
    )
    step = int(np.log2(grid_step(SCALE)))
    yield [
        Comparison(
            "grid noise",
            ours,
            peer(X, cells, step),
            unit="cells",
            is_speed=True,
            at_least=50,
            notes=(f"OpenDP at two sizes: {rates(X, (cells // 10, cells), step)}.",),
        ),
        Comparison(
            "grid noise, defaults", ours, peer(X, cells // 5, None), unit="cells", is_speed=True
        ),
    ]


def keyed_noise(X: Floats) -> None:
    """What pca_laplace adds to its scores: digests, keyed bits, noise on the grid, clamping."""
    columns = X.shape[1]
    schema = Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(columns)))
    noise, fingerprint = Noise(bytes(32)), bytes(32)
    b, g = np.full(columns, SCALE), np.full(columns, grid_step(SCALE))
    ranges = np.tile([0.0, 1.0], (columns, 1))
    for block in ArrayRows(schema, X).blocks():
        bits = noise.bits(block, "pca_laplace", columns, fingerprint)
        add_laplace_noise(block.X, bits, b, g, ranges)


def peer(X: Floats, cells: int, k: int | None) -> Side:
    values = np.ascontiguousarray(X.reshape(-1)[:cells])
    measurement = laplace(cells, k)
    grid = f"on the same grid, 2^{k}" if k is not None else "on its own grid, 2^-1074"
    return Side(f"OpenDP on {cells:,} cells {grid}", lambda: measurement(values), cells)


def laplace(cells: int, k: int | None) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=cells)
    return dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=SCALE, k=k)


def rates(X: Floats, sizes: tuple[int, ...], k: int) -> str:
    """Cells per second of the peer at several sizes, the best of three."""
    found = []
    for cells in sizes:
        side, best = peer(X, cells, k), 0.0
        for _ in range(3):
            start = time.perf_counter()
            side.work()
            best = max(best, cells / (time.perf_counter() - start))
        found.append(f"{best:,.0f} cells/s on {cells:,}")
    return ", ".join(found)
