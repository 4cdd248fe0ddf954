"""Keyed grid noise against OpenDP's Laplace noise, which is also safe on floats."""

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
from ppdm_core.numerics.grid_noise import GridNoise, grid_step
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.noise_distributions import LAPLACE

NOISE_B = 0.3


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare keyed noise with OpenDP on the same grid and on its own."""
    rows, columns = (200, 4) if small else (1_000_000, 20)
    cells = 200 if small else 100_000
    X = np.random.default_rng(1).random((rows, columns))
    ours = Side(
        f"{rows:,} x {columns} cells, keyed by record and value",
        lambda: add_keyed_noise(X),
        rows * columns,
    )
    step = int(np.log2(grid_step(NOISE_B)))
    yield [
        Comparison(
            "grid noise",
            ours,
            build_peer(X, cells, step),
            unit="cells",
            is_speed=True,
            at_least=50,
            notes=(f"OpenDP at two sizes: {measure_rates(X, (cells // 10, cells), step)}.",),
        ),
        Comparison(
            "grid noise, defaults",
            ours,
            build_peer(X, cells // 5, None),
            unit="cells",
            is_speed=True,
        ),
    ]


def add_keyed_noise(X: Floats) -> None:
    """Add the noise of pca_laplace: digests, keyed bits, noise on the grid, clamping."""
    columns = X.shape[1]
    schema = Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(columns)))
    noise, fingerprint = Noise(bytes(32)), bytes(32)
    b, g = np.full(columns, NOISE_B), np.full(columns, grid_step(NOISE_B))
    ranges = np.tile([0.0, 1.0], (columns, 1))
    for block in ArrayRows(schema, X).blocks():
        bits = noise.bits(block, "pca_laplace", columns, fingerprint)
        GridNoise(LAPLACE, b, g, ranges).add(block.X, bits)


def build_peer(X: Floats, cells: int, k: int | None) -> Side:
    """Return OpenDP on some cells; the grid is 2^k, or its default."""
    values = np.ascontiguousarray(X.reshape(-1)[:cells])
    measurement = make_opendp_laplace(cells, k)
    grid = f"on the same grid, 2^{k}" if k is not None else "on its own grid, 2^-1074"
    return Side(f"OpenDP on {cells:,} cells {grid}", lambda: measurement(values), cells)


def make_opendp_laplace(cells: int, k: int | None) -> Any:
    """Return OpenDP's Laplace mechanism for a vector."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=cells)
    return dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=NOISE_B, k=k)


def measure_rates(X: Floats, sizes: tuple[int, ...], k: int) -> str:
    """Return the cells per second of the peer at several sizes, the best of three."""
    found = []
    for cells in sizes:
        side, best = build_peer(X, cells, k), 0.0
        for _ in range(3):
            start = time.perf_counter()
            side.work()
            best = max(best, cells / (time.perf_counter() - start))
        found.append(f"{best:,.0f} cells/s on {cells:,}")
    return ", ".join(found)
