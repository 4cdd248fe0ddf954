from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.errors import MachineTrouble
from ppdm_core.model.rows import BLOCK, ArrayRows, Block
from ppdm_core.model.schema import Numeric, Schema
from tests.contract.broken_engines import InThisProcess
from tests.support.tables import read_bytes
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.parquet_parts import write_parts

SCHEMA = Schema((Numeric("x", 0.0, 1e4),))
BLOCKS = 9


class Counted(InThisProcess):
    """An engine whose parts follow from the number of its workers, as those of a cluster."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.settings = replace(self.settings, part_blocks=None, workers=workers)
        self.workers = workers

    def choose_part_blocks(self, blocks: int) -> int:
        return -(-blocks // self.workers)


@pytest.fixture
def rows(tmp_path: Path) -> ArrayRows:
    made = ArrayRows(SCHEMA, np.arange(BLOCKS * BLOCK, dtype=float)[:, None])
    write_parts(made.blocks(), SCHEMA, tmp_path / "rows")
    return made


def make_step(path: Path, stop_at: int) -> Callable[[Block], Block]:
    """Return a step that writes the number of each block to a file, and fails at one of them."""

    def step(block: Block) -> Block:
        number = block.start // BLOCK
        if number == stop_at and "fail" in path.read_text():
            raise MachineTrouble("The disk is full.")
        with path.open("a") as file:
            file.write(f"{number}\n")
        return replace(block, X=block.X + block.start)

    return step


def test_map_other_number_of_workers_continues(rows: ArrayRows, tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("fail\n")
    step = make_step(log, 7)

    def run(workers: int) -> EngineRows:
        with Counted(workers) as engine:
            return EngineRows(SCHEMA, tmp_path / "rows", engine, identify("rows")).map(step, SCHEMA)

    with pytest.raises(MachineTrouble):
        run(3)
    assert log.read_text().split() == ["fail", *map(str, range(7))]
    log.write_text("")
    (folder,) = tmp_path.glob("rows-*")
    incomplete = folder / ".part-000000006-000000009.parquet.0123"
    incomplete.touch()
    made = run(2)
    assert log.read_text().split() == ["6", "7", "8"]
    assert not incomplete.exists()
    assert read_bytes(made) == read_bytes(
        rows.map(lambda block: replace(block, X=block.X + block.start), SCHEMA)
    )
