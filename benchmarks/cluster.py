"""Time of fitting and perturbing a table in one process, and on workers of a cluster.

    python -m benchmarks.cluster ROWS [COLUMNS]

The table is invented. For each engine it prints processor time, elapsed time and a digest of the
released rows. If these differ, the exit code is 1.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

from ppdm.services.cluster import start_cluster, stop_cluster
from ppdm_core.model.rows import BLOCK, ArrayRows, Block, Rows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tasks.engine import find_home_cluster
from warehouse.engines import EngineSettings
from warehouse.engines.dask import Dask
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.home import Home
from warehouse.parquet_parts import PartRows, write_parts

KEY = b"benchmark key of 32 bytes, no se"[:32]
WORKERS = (1, 2)


def make_blocks(n: int, schema: Schema) -> Iterator[Block]:
    """Yield invented records with correlated columns."""
    d = len(schema.numeric)
    for start in range(0, n, BLOCK):
        rng = np.random.default_rng(start)
        size = min(BLOCK, n - start)
        common = rng.random((size, 1))
        X = (common + rng.random((size, d))) / 2
        rows = ArrayRows(schema, X, record=np.arange(start, start + size))
        yield replace(rows.whole, start=start)


def release(rows: Rows) -> str:
    """Fit, perturb, and return a digest of the released rows."""
    sanitizer = PcaLaplace(components=5, b=0.3, basis="private")
    scaling = fit_scaling(rows, sanitizer.scale)
    X = scaling.apply(rows)
    fitted = {**sanitizer.fit(X), "scaling": scaling.as_dict()}
    released = sanitizer.sanitize(X, Noise(KEY), fitted)
    digest = hashlib.sha256()
    for block in released.rows.blocks():
        digest.update(block.X.tobytes())
    return digest.hexdigest()[:16]


def measure(name: str, rows: Rows, others: list[psutil.Process]) -> str:
    """Print the times of a release, also of other processes; return the digest of its rows."""

    def sum_times() -> float:
        times = [each.cpu_times() for each in (psutil.Process(), *others)]
        return float(sum(each.user + each.system for each in times))

    before, start = sum_times(), time.perf_counter()
    digest = release(rows)
    used, elapsed = sum_times() - before, time.perf_counter() - start
    each = 1e6 * used / rows.n
    print(
        f"{name:10} {used:8.1f} s CPU {elapsed:8.1f} s {each:7.2f} us of CPU per row  {digest}",
        flush=True,
    )
    return digest


def main() -> int:
    """Measure one process, and clusters of one and two workers; return 1 if digests differ."""
    n = int(sys.argv[1])
    d = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    schema = Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d)))
    with tempfile.TemporaryDirectory(prefix="ppdm-") as made:
        folder = Path(made)
        write_parts(make_blocks(n, schema), schema, folder / "rows")
        size = sum(path.stat().st_size for path in (folder / "rows").iterdir())
        print(f"{n:,} rows, {d} columns, {size / 1e6:,.0f} MB in parts", flush=True)
        digests = {measure("1 process", PartRows(schema, folder / "rows"), [])}
        for workers in WORKERS:
            record = start_cluster(folder, workers, lambda text: None)
            settings = find_home_cluster(Home(folder), EngineSettings(kind="dask"))
            try:
                with Dask(settings) as engine:
                    rows = EngineRows(schema, folder / "rows", engine, identify(workers))
                    digests.add(measure(f"{workers} workers", rows, record.living))
            finally:
                stop_cluster(folder)
    if len(digests) > 1:
        print("The digests differ.", flush=True)
    return int(len(digests) > 1)


if __name__ == "__main__":
    sys.exit(main())
