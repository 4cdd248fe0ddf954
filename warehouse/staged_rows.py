"""Rows in a private work file: computed once, then read any number of times.

What takes long is computed before a transaction is opened, which then only copies rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.home import create_private, translate_disk_errors

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class StagedRows:
    """A Parquet file of ``n`` rows, which exists as long as ``stage_rows`` is open."""

    path: Path
    n: int

    def read(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self.path)
        return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())


@contextmanager
def stage_rows(rows: pa.RecordBatchReader, path: Path) -> Iterator[StagedRows]:
    """Write rows to a private file, which is removed at the end."""
    import pyarrow.parquet as pq

    n = 0
    try:
        with (
            translate_disk_errors(path),
            create_private(path) as file,
            pq.ParquetWriter(file, rows.schema, compression="zstd") as writer,
        ):
            for batch in rows:
                writer.write_batch(batch)
                n += batch.num_rows
        yield StagedRows(path, n)
    finally:
        path.unlink(missing_ok=True)
