"""Rows of a release in the order of their ranks, by a radix partition instead of a sort.

Ranks are uniform 64-bit numbers. Rows are first distributed to parts by the leading bits of their
ranks, and each part is sorted in memory when it is read. Memory depends on the size of a part, not
on the number of rows. A table that fits into one part is kept in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from warehouse.columns import RESERVED
from warehouse.home import create_private, translate_disk_errors
from warehouse.sql import KEY

if TYPE_CHECKING:
    import pyarrow as pa

ORDER = f"{RESERVED}order"  # random ranks that follow from the content, in which rows are published
PART_ROWS = 131_072  # about so many rows are sorted in memory at a time
MAX_PARTS = 1_024  # open files
STAGED_ROWS = 131_072  # that are distributed at a time


@dataclass(frozen=True, eq=False)
class OrderedParts:
    """Rows that are read in the order of their ranks, any number of times."""

    held: tuple[pa.Table, ...]  # parts in memory, in order
    paths: tuple[Path, ...]  # or in files

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of one part after the other; keys decide between equal ranks."""
        yield from map(sort_rows, self.held)
        for path in self.paths:
            table = read_part(path)
            if table.num_rows:
                yield sort_rows(table)


@contextmanager
def order_rows(
    rows: pa.RecordBatchReader, n: int, folder: Path, size: int = PART_ROWS
) -> Iterator[OrderedParts]:
    """Distribute about ``n`` rows with ranks and keys to parts, which are removed at the end.

    ``folder`` is made if the rows do not fit into one part.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    try:
        yield partition_rows(rows, n, folder, size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def partition_rows(
    rows: pa.RecordBatchReader, n: int, folder: Path, size: int = PART_ROWS
) -> OrderedParts:
    """Distribute rows to parts, in memory if there is one part, else in files of a new folder."""
    import pyarrow as pa

    bits = min(count_bits(n, size), MAX_PARTS.bit_length() - 1)
    if bits == 0:
        return OrderedParts((rows.read_all(),), ())
    paths = tuple(folder / f"part-{number:04d}.arrow" for number in range(2**bits))
    with translate_disk_errors(folder), ExitStack() as files:
        folder.mkdir(mode=0o700, parents=True)
        writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        for table in stage_batches(rows):
            for number, part in split_by_rank(table, bits):
                if number not in writers:
                    file = files.enter_context(create_private(paths[number]))
                    writers[number] = files.enter_context(pa.ipc.new_stream(file, table.schema))
                writers[number].write_table(part)
    return OrderedParts((), tuple(path for path in paths if path.exists()))


def count_bits(n: int, size: int) -> int:
    """Return how many leading bits of the ranks leave about ``size`` rows in a part."""
    return ((max(n, 1) - 1) // size).bit_length()


def stage_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches in tables of about ``STAGED_ROWS``."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= STAGED_ROWS:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


def split_by_rank(table: pa.Table, bits: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield the number of each part with those of the rows that belong to it."""
    part = (table.column(ORDER).to_numpy() >> np.uint64(64 - bits)).astype(np.int64)
    places = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=2**bits))
    rows, start = table.take(places), 0
    for number, end in enumerate(ends.tolist()):
        if end > start:
            yield number, rows.slice(start, end - start)
        start = end


def read_part(path: Path) -> pa.Table:
    """Return the rows of a part."""
    import pyarrow as pa

    with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def sort_rows(table: pa.Table) -> pa.Table:
    """Return the rows in the order of ranks and keys."""
    import pyarrow as pa

    ranks = table.column(ORDER).to_numpy()
    places = np.argsort(ranks, kind="stable")
    ranked = ranks[places]
    if np.any(ranked[1:] == ranked[:-1]):
        keys = table.column(KEY).cast(pa.binary()).to_pylist()
        words = np.array([[key[:8], key[8:]] for key in keys], dtype="S8")
        high, low = np.frombuffer(words.tobytes(), dtype=">u8").reshape(-1, 2).T
        places = np.lexsort((low, high, ranks))
    return table.take(places)
