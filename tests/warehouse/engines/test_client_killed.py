"""The client of a cluster is killed, and the next one continues its work."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.rows import BLOCK, ArrayRows, Block
from tests.support.clusters import RealCluster
from tests.support.slow_release import SCHEMA, work
from tests.support.tables import read_bytes
from warehouse.parquet_parts import write_parts

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = 8
WORK = """
import sys
from pathlib import Path
from tests.support.slow_release import work
work(Path(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_dask_client_ends_in_map_next_run_same_bytes_nothing_left(
    cluster: RealCluster, tmp_path: Path, how: signal.Signals
):
    """Ctrl-C removes the parts, while workers still write; a killed client leaves them."""
    rows = ArrayRows(SCHEMA, np.arange(BLOCKS * BLOCK, dtype=float)[:, None])
    write_parts(rows.blocks(), SCHEMA, tmp_path / "rows")
    seen, parts = tmp_path / "seen", tmp_path / "parts"
    for folder in (seen, parts):
        folder.mkdir()
    client = subprocess.Popen(
        [sys.executable, "-c", WORK, str(tmp_path)],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    while len(list(seen.iterdir())) < 5:  # two parts are worked on at a time
        assert client.poll() is None
        time.sleep(0.02)
    client.send_signal(how)
    assert client.wait(60) != 0
    time.sleep(2.0)  # workers still write
    left = [path.name for path in parts.rglob("part-*.parquet")]
    assert left == [] if how == signal.SIGINT else 3 <= len(left) < BLOCKS
    assert list(parts.iterdir()) == [] or how == signal.SIGKILL
    for path in seen.iterdir():
        path.unlink()
    found = work(tmp_path)
    assert len(list(seen.iterdir())) == BLOCKS - len(left)
    assert list(parts.iterdir()) == []
    assert list((tmp_path / "home" / "private" / "work").iterdir()) == []

    def add_start(block: Block) -> Block:
        return replace(block, X=block.X + block.start)

    assert found == read_bytes(rows.map(add_start, SCHEMA))
