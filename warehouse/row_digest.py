"""The digest of released rows in any order, which is the same in a file and in a database.

Canonical form, so that any person can compute it: every cell has a fixed width, a byte that is 1 if
the cell is filled, and then the eight bytes of a number (IEEE 754, big-endian, no negative zero) or
the SHA-256 digest of a text in UTF-8; an empty cell has zeros there. The rows are sorted as bytes.
The digest is SHA-256 over a line of JSON with names and types of the columns, and over the rows.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.errors import Refused

if TYPE_CHECKING:
    import pyarrow as pa

SCHEME = b"ppdm rows 1\n"


def digest_released_rows(table: pa.Table) -> str:
    """Return the digest of the rows of a table in any order; a repeated row counts twice."""
    import pyarrow as pa

    cells, kinds = [], []
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        is_number = pa.types.is_floating(column.type)
        if not is_number and not is_text(column.type):
            raise Refused(
                "A column of the release holds neither numbers nor text.",
                column=name,
                remedy="Do not use this copy; ask the steward for a new one.",
            )
        kinds.append([name, "number" if is_number else "text"])
        cells.append(encode_numbers(column) if is_number else encode_texts(column))
    heading = json.dumps(kinds, ensure_ascii=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(SCHEME + heading + b"\n")
    if cells and table.num_rows:
        rows = np.ascontiguousarray(np.concatenate(cells, axis=1))
        digest.update(np.sort(rows.view(f"V{rows.shape[1]}").ravel()).tobytes())
    return digest.hexdigest()


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
