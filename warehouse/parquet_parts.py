"""Tables as Parquet parts on disk: the same blocks as in memory, with bounded memory."""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.arrays import Keys
from ppdm_core.model.rows import (
    BLOCK,
    Block,
    S,
    add_counts,
    fold_blocks,
    regroup_blocks,
    slice_rows,
)
from ppdm_core.model.schema import Schema
from warehouse.home import create_private

if TYPE_CHECKING:
    import pyarrow as pa

LABEL, RECORD, KEY = "label", "record", "key"
COUNTS = "counts"  # entry of a part's footer


@dataclass(frozen=True)
class PartFile:
    """A file of a table, and the number of its rows."""

    path: str
    rows: int


class PartRows:
    """Rows in a folder: the names of its parts sort in row order, row groups have any size."""

    def __init__(
        self, schema: Schema, folder: Path, counts: Mapping[str, int] | None = None
    ) -> None:
        self.schema, self.folder = schema, folder
        self.counts = counts or {}  # by the steps that made these rows; not stored in the folder

    @property
    def n(self) -> int:
        return sum(file.rows for file in self.list_files())

    def list_files(self) -> list[PartFile]:
        """Return the parts with their numbers of rows."""
        import pyarrow.parquet as pq

        return [PartFile(str(path), pq.read_metadata(path).num_rows) for path in self.parts()]

    def parts(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def blocks(self) -> Iterator[Block]:
        return regroup_blocks(self._chunks())

    def _chunks(self) -> Iterator[Block]:
        import pyarrow.parquet as pq

        for path in self.parts():
            # Buffering ahead would load the complete file into memory.
            with pq.ParquetFile(path, pre_buffer=False) as part:
                for batch in part.iter_batches(batch_size=BLOCK):
                    yield to_block(batch, self.schema)

    def reduce(self, step: Callable[[Block], S], merge: Callable[[S, S], S]) -> S:
        return fold_blocks(self.blocks(), step, merge)

    def map(self, step: Callable[[Block], Block], schema: Schema) -> PartRows:
        """Write the result of the step to a new folder next to this one."""
        folder = next(
            path
            for path in (
                self.folder.with_name(f"{self.folder.name}_{i}") for i in itertools.count()
            )
            if not path.exists()
        )
        return write_parts(map(step, self.blocks()), schema, folder, self.counts)


def read_rows(files: Sequence[PartFile], schema: Schema, low: int, high: int) -> Iterator[Block]:
    """Yield rows ``[low, high)`` of a table in chunks; only their row groups are read."""
    import pyarrow.parquet as pq

    start = 0  # of the file in the table
    for file in files:
        end = start + file.rows
        if start < high and low < end:
            with pq.ParquetFile(file.path, pre_buffer=False) as part:
                yield from _read_groups(part, schema, low - start, high - start)
        start = end


def _read_groups(part: Any, schema: Schema, low: int, high: int) -> Iterator[Block]:
    """Yield rows ``[low, high)`` of a file; ``low`` may be negative."""
    start = 0
    for group in range(part.num_row_groups):
        end = start + part.metadata.row_group(group).num_rows
        if start < high and low < end:
            position = start
            for batch in part.iter_batches(batch_size=BLOCK, row_groups=[group]):
                chunk = to_block(batch, schema)
                first, last = max(0, low - position), min(chunk.n, high - position)
                if first < last:
                    yield slice_rows(chunk, first, last)
                position += chunk.n
        start = end


def write_parts(
    blocks: Iterable[Block], schema: Schema, folder: Path, counts: Mapping[str, int] | None = None
) -> PartRows:
    """Write the blocks to a new folder; their counts are added to ``counts``."""

    folder.mkdir(mode=0o700, parents=True)
    written = write_part(blocks, schema, folder / "part-0000.parquet")
    return PartRows(schema, folder, add_counts(counts or {}, written))


def write_part(blocks: Iterable[Block], schema: Schema, path: Path) -> dict[str, int]:
    """Write the blocks to one file, with their counts in its footer; return the counts.

    The file has another name until it is complete, so that one that exists can be used.
    """
    import pyarrow.parquet as pq

    writer = None
    counts: dict[str, int] = {}
    incomplete = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with ExitStack() as files:
            for block in blocks:
                batch = to_batch(block, schema)
                if writer is None:
                    file = files.enter_context(create_private(incomplete))
                    writer = files.enter_context(
                        pq.ParquetWriter(file, batch.schema, compression="zstd")
                    )
                writer.write_batch(batch)
                counts = add_counts(counts, block.counts)
            if writer is not None:
                writer.add_key_value_metadata({COUNTS: json.dumps(counts)})
        if writer is not None:
            incomplete.replace(path)
    finally:
        incomplete.unlink(missing_ok=True)
    return counts


def read_counts(path: Path) -> dict[str, int]:
    """Return what the steps that made a part counted."""
    import pyarrow.parquet as pq

    counts: dict[str, int] = json.loads(pq.read_metadata(path).metadata[COUNTS.encode()])
    return counts


def column_names(schema: Schema) -> list[str]:
    """Return the names of the columns in a part."""
    numeric = [f"x{i}" for i in range(len(schema.numeric))]
    return [*numeric, *(f"c{i}" for i in range(len(schema.categorical))), LABEL, RECORD, KEY]


def to_batch(block: Block, schema: Schema) -> pa.RecordBatch:
    """Return a block as Arrow."""
    import pyarrow as pa

    arrays: list[Any] = [pa.array(column) for column in np.ascontiguousarray(block.X.T)]
    arrays += [pa.array(column) for column in np.ascontiguousarray(block.C.T)]
    arrays += [pa.array(block.label), pa.array(block.record), encode_keys(block.key)]
    return pa.RecordBatch.from_arrays(arrays, names=column_names(schema))


def encode_keys(keys: Keys) -> pa.FixedSizeBinaryArray:
    """Return keys, (n, 16) bytes, as Arrow."""
    import pyarrow as pa

    buffer = pa.py_buffer(np.ascontiguousarray(keys).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(keys), [None, buffer])


def to_block(batch: pa.RecordBatch, schema: Schema) -> Block:
    """Return Arrow data as a block that starts at row 0."""
    d, c = len(schema.numeric), len(schema.categorical)
    n = batch.num_rows
    columns = batch.columns
    X = np.empty((n, d))
    for i in range(d):
        X[:, i] = columns[i].to_numpy(zero_copy_only=False)
    C = np.empty((n, c), dtype=np.int32)
    for i in range(c):
        C[:, i] = columns[d + i].to_numpy(zero_copy_only=False)
    key = columns[-1]
    raw = np.frombuffer(key.buffers()[1], dtype=np.uint8)[key.offset * 16 : (key.offset + n) * 16]
    return Block(
        X=X,
        C=C,
        label=columns[-3].to_numpy(zero_copy_only=False).astype(np.int32),
        key=raw.reshape(n, 16),
        record=columns[-2].to_numpy(),
        start=0,
    )
