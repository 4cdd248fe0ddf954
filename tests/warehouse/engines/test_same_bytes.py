"""The bytes of a release do not depend on parts, workers, and workers that die."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.rows import BLOCK, Rows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.clusters import RealCluster
from tests.support.slow_cases import mark_exhaustive
from tests.support.tables import fit_sanitizer, make_table, read_bytes, scale_rows
from warehouse.engines.dask import Dask
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.parquet_parts import write_parts

KEY = b"0123456789abcdef0123456789abcdef"
BLOCKS = 65  # one more than the largest parts have
CASES = list(product((1, 7, 64), (1, 2, 3, 4)))
SLOW = ((64, 1), (7, 2), (1, 3), (64, 4))


@dataclass(frozen=True)
class Table:
    """Rows in a folder, and what a release of them must be."""

    folder: Path
    rows: Rows
    expected: Any


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("table") / "rows"
    rows = make_table(BLOCKS * BLOCK - 5, 2)
    write_parts(rows.blocks(), rows.schema, folder)
    return Table(folder, rows, release(rows))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    made = RealCluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield made
    finally:
        made.close()


def release(rows: Rows) -> Any:
    """Fit and perturb; return everything that a release could depend on."""
    sanitizer = PcaLaplace(components=1, b=0.3, basis="private", noise_shape="per_component")
    fitted = fit_sanitizer(sanitizer, rows)
    released = sanitizer.sanitize(scale_rows(rows, fitted), Noise(KEY), fitted)
    return fitted, read_bytes(released.rows), released.counts


def set_workers(cluster: RealCluster, count: int) -> None:
    """Start or kill workers until there are so many."""
    living = [name for name in cluster.processes if name != "scheduler"]
    for name in living[count:]:
        cluster.kill(name)
    for i in range(len(living), count):
        cluster.start_worker(f"{count}-{i}")


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "workers"), mark_exhaustive(CASES, SLOW))
def test_dask_parts_workers_and_a_death_same_bytes(
    cluster: RealCluster, table: Table, blocks: int, workers: int
):
    """One worker is killed after the first file of a part was begun."""
    set_workers(cluster, workers)
    victim = next(name for name in cluster.processes if name != "scheduler")
    with Dask(replace(cluster.settings, part_blocks=blocks)) as engine:
        assert engine.workers == workers
        before = set(table.folder.parent.glob("rows-*"))

        def kill() -> None:
            while set(table.folder.parent.glob("rows-*")) == before:
                time.sleep(0.01)
            cluster.kill(victim)
            if workers == 1:
                cluster.start_worker("successor")

        killer = threading.Thread(target=kill)
        killer.start()
        rows = EngineRows(table.rows.schema, table.folder, engine, identify(blocks, workers))
        found = release(rows)
        killer.join()
    assert victim not in cluster.processes
    assert found == table.expected
