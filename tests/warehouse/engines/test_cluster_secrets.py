"""No key and no cell is in a log, a task's name, a dump, or a file that a worker spilled."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.rows import BLOCK, ArrayRows, Block
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from tests.support.clusters import RealCluster
from tests.support.pickled_files import find_pickles
from tests.support.scheduled_home import wait_until
from warehouse.engines import dask
from warehouse.engines._messages import pack_value
from warehouse.engines.dask import Dask
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.parquet_parts import write_parts

CANARY_KEY = b"canary key of thirty-two bytes.."
CANARY_CELL = 4711.81508150815
SUBKEY = Noise(CANARY_KEY).subkey("rank", "canary")
SCHEMA = Schema((Numeric("x", 0.0, 1e4),))
SPILLING = {
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "0.0000000001",  # of the memory: every reply
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "0.7",
}
IDENTITY_SEAL = {"DASK_DISTRIBUTED__WORKER__PRELOAD": "tests.support.identity_seal"}
OTHER_VERSION = (("code version", "other"),)


def list_canaries() -> list[bytes]:
    """Return keys and a cell in the forms in which they could be written."""
    found = [CANARY_KEY, SUBKEY, CANARY_KEY.hex().encode(), SUBKEY.hex().encode()]
    found += [np.float64(CANARY_CELL).tobytes(), b"4711.815"]
    return [*found, *(repr(each)[2:-1].encode() for each in found[:2])]


@contextmanager
def start_cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[RealCluster]:
    """Start a scheduler and a worker that spills all replies."""
    cluster = RealCluster(folder)
    try:
        cluster.start_worker("spilling", {**SPILLING, **environment})
        yield cluster
    finally:
        cluster.close()


def use_canaries(cluster: RealCluster, folder: Path) -> dict[str, list[bytes]]:
    """Send canaries through a cluster in every way; return those that are found, by place."""
    rows = ArrayRows(SCHEMA, np.full((3 * BLOCK, 1), CANARY_CELL))
    write_parts(rows.blocks(), rows.schema, folder / "rows")
    noise, go_on = Noise(CANARY_KEY), folder / "go on"

    def perturb(block: Block) -> Block:
        return replace(block, X=block.X + (noise.ranks(block.key, "canary")[:, None] > 2**63))

    def fail(block: Block) -> float:
        raise ValueError(f"{block.X[0, 0]!r} {noise.subkey('rank', 'canary')!r}")

    def wait(part: object) -> object:
        wait_until(go_on.exists)
        return part

    with Dask(replace(cluster.settings, part_blocks=1)) as engine:
        assert engine.client is not None
        spread = EngineRows(SCHEMA, folder / "rows", engine, identify("rows"))
        spread.map(perturb, SCHEMA)
        with pytest.raises(Exception, match="A defect of ppdm: ValueError"):
            spread.reduce(fail, max)
        secret = pack_value((CANARY_KEY, SUBKEY, CANARY_CELL, repr(CANARY_CELL)))
        finished = engine.submit(pack_value(return_part), secret)
        assert finished.status and finished.result()  # the message and its reply are kept
        running = engine.submit(pack_value(wait), secret)
        check, engine.check = engine.check, dask.seal(engine.key, pack_value(OTHER_VERSION))
        refused = engine.submit(pack_value(return_part), secret)
        engine.check = check
        # Dask logs the arguments of a function that fails, unless it is a task.
        sealed = [dask.seal(engine.key, each) for each in (b"", b"", secret)]
        with pytest.raises(TypeError):
            engine.client.run(dask.answer_sealed, *sealed)
        engine.client.dump_cluster_state(str(folder / "dump"), format="msgpack")
        shown = repr(engine.client.story(running)) + repr(engine.client.scheduler_info())
        logs = repr(engine.client.get_scheduler_logs()) + repr(engine.client.get_worker_logs())
        spilled = list((cluster.folder / "spill").rglob("storage/*"))
        assert spilled, "nothing was spilled"
        texts = {
            "logs": [each.read_bytes() for each in cluster.folder.glob("*.log")] + [logs.encode()],
            "dump": [gzip.decompress((folder / "dump.msgpack.gz").read_bytes()), shown.encode()],
            "spilled files": [each.read_bytes() for each in spilled],
            "names": [repr(sorted(path.name for path in cluster.folder.rglob("*"))).encode()],
        }
        go_on.touch()
        assert running.result()
        assert refused.exception() is not None
    assert all(max(map(len, each)) > 20 for each in texts.values())
    assert find_pickles(folder) == []
    found = {
        place: [each for each in list_canaries() if any(each in text for text in some)]
        for place, some in texts.items()
    }
    return {place: some for place, some in found.items() if some}


def return_part(part: object) -> object:
    return part


@pytest.mark.slow
def test_dask_canaries_in_no_log_name_dump_or_spilled_file(tmp_path: Path):
    with start_cluster(tmp_path / "cluster", {}) as cluster:
        assert use_canaries(cluster, tmp_path) == {}


@pytest.mark.slow
def test_dask_canaries_planted_bug_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The test above would see that messages are not sealed."""
    for name in ("seal", "unseal"):
        monkeypatch.setattr(dask, name, lambda key, data: data)
    with start_cluster(tmp_path / "cluster", IDENTITY_SEAL) as cluster:
        assert use_canaries(cluster, tmp_path).keys() == {"logs", "dump", "spilled files"}
