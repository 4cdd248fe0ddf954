"""The digest of released rows in any order, which is the same in a file and in a database.

Canonical form, so that any person can compute it: every cell has a fixed width, a byte that is 1 if
the cell is filled, and then the eight bytes of a number (IEEE 754, big-endian, no negative zero) or
the SHA-256 digest of a text in UTF-8; an empty cell has zeros there. The rows are sorted as bytes.
The digest is SHA-256 over a line of JSON with names and types of the columns, and over the rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.errors import Refused
from warehouse.home import translate_disk_errors
from warehouse.scratch import open_scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa

SCHEME = b"ppdm rows 1\n"
RUN_BYTES = 16_000_000  # of encoded rows that are sorted in memory
MAX_SAMPLE_STEP = 1_024  # rows of a stored run between those that are kept in memory
SortedRows: TypeAlias = NDArray[np.bytes_]


def digest_released_rows(table: pa.Table) -> str:
    """Return the digest of the rows of a table in any order; a repeated row counts twice."""
    return digest_row_blocks([table])


def digest_row_blocks(tables: Iterable[pa.Table], run_bytes: int = RUN_BYTES) -> str:
    """Return the digest of the rows of several tables, of which one is in memory at a time.

    Rows are sorted in runs of at most ``run_bytes``. If there are several, they are written to a
    temporary folder and merged.
    """
    rest = iter(tables)
    first = next(rest, None)
    kinds = [] if first is None else describe_columns(first)
    heading = json.dumps(kinds, ensure_ascii=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(SCHEME + heading + b"\n")
    if first is None or not kinds:
        return digest.hexdigest()
    for rows in sort_runs(collect_runs(chain([first], rest), run_bytes), run_bytes):
        digest.update(rows.tobytes())
    return digest.hexdigest()


def describe_columns(table: pa.Table) -> list[list[str]]:
    """Return names and types of the columns; refuse others than numbers and text."""
    import pyarrow as pa

    kinds = []
    for field in table.schema:
        is_number = pa.types.is_floating(field.type)
        if not is_number and not is_text(field.type):
            raise Refused(
                "A column of the release holds neither numbers nor text.",
                column=field.name,
                remedy="Do not use this copy; ask the steward for a new one.",
            )
        kinds.append([field.name, "number" if is_number else "text"])
    return kinds


def encode_rows(table: pa.Table) -> SortedRows:
    """Return each row as one value; they are not sorted yet."""
    import pyarrow as pa

    cells = []
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        is_number = pa.types.is_floating(column.type)
        cells.append(encode_numbers(column) if is_number else encode_texts(column))
    rows = np.ascontiguousarray(np.concatenate(cells, axis=1))
    return rows.view(f"S{rows.shape[1]}").ravel()  # compared as bytes; zeros at the end count


def collect_runs(tables: Iterable[pa.Table], run_bytes: int) -> Iterator[SortedRows]:
    """Yield the rows in sorted runs of about ``run_bytes``."""
    held: list[SortedRows] = []
    for table in chain(tables, [None]):
        if table is not None and table.num_rows:
            held.append(encode_rows(table))
        if held and (table is None or sum(each.nbytes for each in held) >= run_bytes):
            rows, held = np.concatenate(held), []
            rows.sort()
            yield rows


class StoredRun:
    """Sorted rows in a file, with every ``step``-th of them in memory."""

    def __init__(self, rows: SortedRows, path: Path, step: int) -> None:
        rows.tofile(path)
        self.path, self.dtype, self.n, self.step = path, rows.dtype, len(rows), step
        self.samples = rows[::step].copy()

    def read(self, start: int, stop: int) -> SortedRows:
        """Return some of the rows."""
        offset = start * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, stop - start, offset=offset)

    def find(self, bound: bytes) -> int:
        """Return the number of rows before a bound."""
        start = max(0, int(np.searchsorted(self.samples, bound)) - 1) * self.step
        rows = self.read(start, min(start + self.step, self.n))
        return start + int(np.searchsorted(rows, bound))


def sort_runs(runs: Iterator[SortedRows], run_bytes: int) -> Iterator[SortedRows]:
    """Yield the rows of all sorted runs in order, about ``run_bytes`` at a time.

    One run is yielded as it is. Several are written to a temporary folder.
    """
    first, second = next(runs, None), next(runs, None)
    if first is None or second is None:
        yield from () if first is None else (first,)
        return
    step = max(1, min(MAX_SAMPLE_STEP, len(first) // 8))
    with open_scratch_folder() as folder, translate_disk_errors(folder):
        stored = [
            StoredRun(rows, folder / str(number), step)
            for number, rows in enumerate(chain([first, second], runs))
        ]
        del first, second
        yield from merge_runs(stored, run_bytes)


def merge_runs(runs: Sequence[StoredRun], run_bytes: int) -> Iterator[SortedRows]:
    """Yield the rows of all runs in order, in portions.

    Portions are bounded by rows at regular places of every run, so that none is much larger than
    others, whatever the order of the rows was.
    """
    samples = np.sort(np.concatenate([run.samples for run in runs]))
    every = max(1, run_bytes // (runs[0].dtype.itemsize * runs[0].step))
    starts = [0] * len(runs)
    for bound in [*samples[every::every], None]:
        stops = [run.n if bound is None else run.find(bound) for run in runs]
        places = zip(runs, starts, stops, strict=True)
        rows = np.concatenate([run.read(start, stop) for run, start, stop in places])
        rows.sort()
        yield rows
        starts = stops


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def encode_numbers(column: pa.Array) -> NDArray[np.uint8]:
    """Return nine bytes for each number."""
    import pyarrow.compute as pc

    filled = column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
    numbers = pc.fill_null(column.cast("float64"), 0.0).to_numpy(zero_copy_only=False) + 0.0
    data = numbers.astype(">f8").view(np.uint8).reshape(-1, 8)
    return np.concatenate([filled[:, None], data], axis=1)


def encode_texts(column: pa.Array) -> NDArray[np.uint8]:
    """Return 33 bytes for each text."""
    encoded = column.cast("string").dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    values = [hashlib.sha256(text.encode()).digest() for text in encoded.dictionary.to_pylist()]
    table = np.frombuffer(b"".join([*(b"\1" + each for each in values), bytes(33)]), np.uint8)
    return np.asarray(table.reshape(-1, 33)[codes])
