"""Real schedulers and workers, which are killed while they work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.errors import MachineTrouble
from ppdm_core.model.rows import BLOCK, ArrayRows, Block
from ppdm_core.model.schema import Numeric, Schema
from tests.support.clusters import RealCluster
from tests.support.tables import read_bytes
from warehouse.engines import dask
from warehouse.engines.dask import Dask
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.parquet_parts import write_parts

CANARY_CELL = 4711.81508150815
SCHEMA = Schema((Numeric("x", 0.0, 1e4),))


def write_table(folder: Path, blocks: int = 6) -> ArrayRows:
    """Write a table in which every cell is the canary."""
    rows = ArrayRows(SCHEMA, np.full((blocks * BLOCK, 1), CANARY_CELL))
    write_parts(rows.blocks(), rows.schema, folder / "rows")
    return rows


def make_waiting_step(started: Path) -> Callable[[Block], Block]:
    """Return a step that takes some time, and writes a file when it begins."""

    def wait(block: Block) -> Block:
        started.touch()
        time.sleep(0.5)
        return replace(block, X=block.X + block.start)

    return wait


def kill_later(cluster: RealCluster, name: str, started: Path) -> threading.Thread:
    """Kill a process of the cluster as soon as a step has begun."""

    def kill() -> None:
        deadline = time.monotonic() + 120
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.kill(name)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.parametrize("what", ["map", "reduce"])
def test_dask_worker_killed_same_result(cluster: RealCluster, tmp_path: Path, what: str):
    rows, started = write_table(tmp_path), tmp_path / "started"

    wait = make_waiting_step(started)
    with Dask(replace(cluster.settings, part_blocks=1)) as engine:
        spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows"))
        killer = kill_later(cluster, "one", started)
        if what == "map":
            assert read_bytes(spread.map(wait, SCHEMA)) == read_bytes(rows.map(wait, SCHEMA))
        else:
            found = (
                each.reduce(lambda block: wait(block).X.sum(axis=0), np.add)
                for each in (spread, rows)
            )
            assert len({total.tobytes() for total in found}) == 1
        killer.join()
        assert list(engine.list_workers()) == ["Worker 'two'"]


@pytest.mark.slow
def test_dask_message_given_up_runs_again(cluster: RealCluster, tmp_path: Path):
    """A worker may die with a reply that the scheduler counts as finished."""
    rows, started = write_table(tmp_path), tmp_path / "started"

    wait = make_waiting_step(started)
    with Dask(replace(cluster.settings, part_blocks=1)) as engine:
        sent, submit = [], engine.submit
        engine.submit = lambda *given, **more: sent.append(submit(*given, **more)) or sent[-1]

        def give_up() -> None:
            while not started.exists():
                time.sleep(0.05)
            engine.client.cancel(sent[-2:], force=True)

        thread = threading.Thread(target=give_up)
        thread.start()
        spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows"))
        assert read_bytes(spread.map(wait, SCHEMA)) == read_bytes(rows.map(wait, SCHEMA))
        thread.join()
        assert len(sent) > 6  # there are six parts


@pytest.mark.slow
def test_dask_everything_killed_next_run_continues(
    cluster: RealCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dask, "MAX_SECONDS_WITHOUT_WORKERS", 2.0)
    rows, folder = write_table(tmp_path), tmp_path / "runs"
    folder.mkdir()

    def step(block: Block) -> Block:
        (folder / f"{block.start}-{time.time_ns()}").touch()
        time.sleep(0.5)
        return replace(block, X=block.X + block.start)

    settings = replace(cluster.settings, part_blocks=1)
    for name in ("workers", "scheduler"):
        with Dask(settings) as engine:
            spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows", name))

            def wait_and_kill(name: str = name) -> None:
                count = len(list(folder.iterdir()))
                while len(list(folder.iterdir())) < count + 3:
                    time.sleep(0.05)
                for each in ["one", "two"] if name == "workers" else ["scheduler"]:
                    cluster.kill(each)

            killer = threading.Thread(target=wait_and_kill)
            killer.start()
            message = "All workers" if name == "workers" else "stopped answering"
            with pytest.raises(MachineTrouble, match=message):
                spread.map(step, SCHEMA)
            killer.join()
        if name == "scheduler":
            for each in ("one", "two"):
                cluster.kill(each)
            cluster.start_scheduler()
        for each in ("one", "two"):
            cluster.start_worker(each)
        before = len(list(folder.iterdir()))
        settings = replace(cluster.settings, part_blocks=1)
        with Dask(settings) as engine:
            spread = EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows", name))
            made = spread.map(step, SCHEMA)
        assert len(list(folder.iterdir())) - before < 6, "it began again from the first part"
        assert read_bytes(made) == read_bytes(
            rows.map(lambda block: replace(block, X=block.X + block.start), SCHEMA)
        )
