"""The memory of writing a sink and of reading it back does not grow with the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.memory import measure_peak_memory
from tests.contract.checks_sinks import make_delivery
from tests.contract.test_sinks import make_bucket, make_database
from tests.support.servers import PASSWORD, Buckets, Postgresql
from warehouse.row_digest import digest_row_blocks
from warehouse.sinks import SINKS, FileSink, ServerSink
from warehouse.sinks.parquet import DATA

D, BATCH = 8, 50_000
GROUPS = ("a", "b", "c")
SIZES = {"duckdb": (2_000_000, 3_500_000)}  # rows; beyond what its cache holds
USUAL_SIZES = (600_000, 1_600_000)  # a million rows take 75 MB
MAX_GROWTH_BYTES = 40 * 2**20
OPTIONS = {"parquet": {"partition": "group"}}


def write_rows(folder: Path, n: int) -> None:
    """Write released rows that do not compress."""
    names = [f"x{j}" for j in range(D)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("group", pa.string())])
    with pq.ParquetWriter(folder / DATA, schema, store_schema=False) as writer:
        for start in range(0, n, BATCH):
            rng = np.random.default_rng(start)
            cells = [pa.array(column) for column in rng.random((D, BATCH))]
            label = pa.array(np.array(GROUPS)[rng.integers(0, len(GROUPS), BATCH)])
            writer.write_table(pa.table([*cells, label], schema=schema))


def write_and_read(key: str, options: dict[str, str], folder: str) -> None:
    sink = SINKS[key]
    if isinstance(sink, FileSink):
        sink.write(Path(folder), options)
        digest_row_blocks(sink.read(Path(folder), options))
        return
    assert isinstance(sink, ServerSink)
    delivery = make_delivery(key, options)
    sink.stage(delivery, Path(folder))
    digest_row_blocks(sink.read_staged(delivery, Path(folder)))


@pytest.fixture
def options(
    key: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    if key == "postgresql":
        postgresql: Postgresql = request.getfixturevalue("postgresql")
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        return make_database(postgresql).options
    if key == "s3":
        buckets: Buckets = request.getfixturevalue("buckets")
        return make_bucket(buckets, monkeypatch).options
    return OPTIONS.get(key, {})


@pytest.mark.slow
@pytest.mark.parametrize("key", SINKS)
def test_write_and_read_more_rows_hardly_more_memory(
    key: str, options: dict[str, str], tmp_path: Path
) -> None:
    peaks = []
    for n in SIZES.get(key, USUAL_SIZES):
        (tmp_path / str(n)).mkdir()
        write_rows(tmp_path / str(n), n)
        peaks.append(measure_peak_memory(write_and_read, key, options, str(tmp_path / str(n))))
    assert peaks[1] - peaks[0] < MAX_GROWTH_BYTES, peaks
