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
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.errors import Refused
from warehouse.home import translate_disk_errors
from warehouse.scratch import open_scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa

SCHEME = b"ppdm rows 1\n"
RUN_BYTES = 64_000_000  # of encoded rows that are sorted in memory
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
    first = next(rest)
    kinds = describe_columns(first)
    heading = json.dumps(kinds, ensure_ascii=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(SCHEME + heading + b"\n")
    if not kinds:
        return digest.hexdigest()
    with ExitStack() as stack:
        runs = store_runs(collect_runs(chain([first], rest), run_bytes), stack)
        for part in merge_runs(runs, run_bytes):
            digest.update(part.tobytes())
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
    for table in tables:
        if table.num_rows:
            held.append(encode_rows(table))
        if sum(each.nbytes for each in held) >= run_bytes:
            yield np.sort(np.concatenate(held))
            held = []
    if held:
        yield np.sort(np.concatenate(held))


def store_runs(runs: Iterator[SortedRows], stack: ExitStack) -> list[SortedRows]:
    """Return one run as it is, and several as arrays in files of a temporary folder."""
    first, second = next(runs, None), next(runs, None)
    if first is None or second is None:
        return [] if first is None else [first]
    folder = stack.enter_context(open_scratch_folder())
    stored = []
    with translate_disk_errors(folder):
        for number, rows in enumerate(chain([first, second], runs)):
            rows.tofile(folder / str(number))
            stored.append(np.memmap(folder / str(number), dtype=rows.dtype, mode="r"))
    return list(stored)


def merge_runs(runs: Sequence[SortedRows], run_bytes: int) -> Iterator[SortedRows]:
    """Yield all rows in order; a portion has about ``run_bytes``.

    Portions are bounded by rows at regular places of every run, so that none is much larger than
    others, whatever the order of the rows was.
    """
    if len(runs) < 2:
        yield from runs
        return
    step = max(1, run_bytes // (runs[0].itemsize * len(runs)))
    samples = np.sort(np.concatenate([run[::step] for run in runs]))
    bounds = samples[len(runs) :: len(runs)]
    starts = np.zeros(len(runs), dtype=np.int64)
    for bound in [*bounds, None]:
        stops = np.array(
            [len(run) if bound is None else np.searchsorted(run, bound) for run in runs]
        )
        parts = [run[a:b] for run, a, b in zip(runs, starts, stops, strict=True) if b > a]
        if parts:
            yield np.sort(np.concatenate(parts))
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
