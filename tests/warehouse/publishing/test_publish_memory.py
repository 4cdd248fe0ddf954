"""The memory of ordering, scanning and digesting a release does not grow with its rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.memory import measure_peak_memory
from ppdm_core.numerics.scaling import Scaling
from warehouse.database import Run
from warehouse.ordered_parts import ORDER
from warehouse.publishing.expected_content import ExpectedContent
from warehouse.publishing.leak_scan import check_bytes
from warehouse.publishing.originals import store_originals
from warehouse.row_digest import digest_row_blocks
from warehouse.sanitized_tables import create_table, write_candidate
from warehouse.scratch import open_scratch_database
from warehouse.sinks.parquet import read_tables
from warehouse.sql import KEY, ROW
from warehouse.stages import Stage
from warehouse.tables import candidate_table, validated_table

D, BATCH = 6, 20_000
NAMES = tuple(f"x{j}" for j in range(D))
MAX_GROWTH_BYTES = 60 * 2**20  # of 500,000 more rows, whose two tables take 48 MB
RUN = Run("t-0001", "t", 1, "s", "f", "c", Stage.APPROVED, 0, None, datetime.now(UTC))


def stream_rows(n: int, shift: float) -> pa.RecordBatchReader:
    """Rows on a grid, with keys and ranks."""

    def make_batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, n, BATCH):
            rng, m = np.random.default_rng(start), min(BATCH, n - start)
            X = rng.random((m, D)) + shift
            keys = pa.array([rng.bytes(16)] * m)
            cells = [pa.array(column) for column in X.T]
            ranks = rng.integers(0, 2**64, m, dtype=np.uint64)
            places = np.arange(start, start + m)
            yield pa.RecordBatch.from_arrays(
                [*cells, pa.array(ranks), pa.array(places), keys], names=[*NAMES, ORDER, ROW, KEY]
            )

    first = next(make_batches())
    return pa.RecordBatchReader.from_batches(first.schema, make_batches())


def publish(n: int) -> None:
    """Order, scan and digest a release of n rows."""
    with tempfile.TemporaryDirectory() as name, open_scratch_database() as db:
        folder = Path(name)
        db.execute("set memory_limit = '64MB'").fetchall()  # less than either table
        db.execute("create schema sanitized; create schema validated").fetchall()
        create_table(db, validated_table(RUN), stream_rows(n, 0.0))
        create_table(db, candidate_table(RUN), stream_rows(n, 0.3))
        path = folder / "data.parquet"
        write_candidate(stream_rows(n, 0.3), n, NAMES, path, folder / "work")
        scaling = Scaling("none", np.zeros(D), np.ones(D))
        expected = ExpectedContent(
            columns=NAMES,
            label=None,
            categories=(),
            rows=n,
            atom=2.0**-20,
            draws=D,
            grid=None,
            forbidden=frozenset(),
            originals=store_originals(db, RUN, NAMES, (), (), scaling, folder / "work"),
            same_columns=True,
        )
        check_bytes(folder / "data.parquet", expected)
        digest_row_blocks(read_tables(folder / "data.parquet"))


@pytest.mark.slow
def test_publish_more_rows_hardly_more_memory() -> None:
    small, large = (measure_peak_memory(publish, n) for n in (300_000, 800_000))
    assert large - small < MAX_GROWTH_BYTES
