"""Work on a cluster that takes some time, for tests that kill the client."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from ppdm_core.model.rows import BLOCK, Block
from ppdm_core.model.schema import Numeric, Schema
from tasks.engine import open_work
from tests.support.clusters import read_settings
from tests.support.contexts import make_context
from tests.support.tables import read_bytes
from warehouse.engines.dask import Dask
from warehouse.engines.engine_rows import EngineRows, identify

SCHEMA = Schema((Numeric("x", 0.0, 1e9),))
RELEASE = "table-0001"


@dataclass(frozen=True)
class SlowStep:
    """Notes each block that is worked on in a folder."""

    folder: str
    seconds: float

    def __call__(self, block: Block) -> Block:
        (Path(self.folder) / f"{block.start // BLOCK}-{time.time_ns()}").touch()
        time.sleep(self.seconds)
        return replace(block, X=block.X + block.start)


def work(folder: Path, seconds: float = 0.5) -> bytes:
    """Perturb the table in a folder on the cluster next to it; return the bytes."""
    settings = replace(read_settings(folder / "cluster"), folder=str(folder / "parts"))
    context = make_context(folder, engine=settings)
    with (
        Dask(replace(settings, part_blocks=1)) as engine,
        open_work(context, RELEASE, engine) as parts,
    ):
        # The rows of a step lie next to the table.
        if not (parts / "rows").exists():
            (parts / "rows").symlink_to(folder / "rows")
        rows = EngineRows(SCHEMA, parts / "rows", engine, identify("rows"))
        return read_bytes(rows.map(SlowStep(str(folder / "seen"), seconds), SCHEMA))
