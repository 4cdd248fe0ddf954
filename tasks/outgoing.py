"""Released rows on their way to the warehouse: codes become words again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.noise import Noise
from ppdm_core.types import Block, Codes, Floats, Released, Rows
from warehouse.columns import Column
from warehouse.door import ORDER

if TYPE_CHECKING:
    import pyarrow as pa


def reader_of(
    X: Rows,
    released: Released,
    noise: Noise,
    label: Column | None,
    undo: Callable[[Floats], Floats] | None,
) -> pa.RecordBatchReader:
    """Released rows as Arrow, with the record they belong to, a keyed order, the label in words.

    Of the categorical columns only those that the method answers for are written.
    """
    import pyarrow as pa

    answered = [response.column for response in released.public.responses]
    place = {column.name: j for j, column in enumerate(released.rows.schema.categorical)}
    fields = [pa.field(name, pa.float64()) for name in released.public.columns]
    fields += [pa.field(column.name, pa.string()) for column in answered]
    fields += [pa.field(label.name, pa.string())] if label else []
    fields += [pa.field(ORDER, pa.uint64()), pa.field("__ppdm_key", pa.binary(16))]
    schema = pa.schema(fields)

    def batch(source: Block, block: Block) -> pa.RecordBatch:
        Y = block.X if undo is None else undo(block.X)
        arrays: list[Any] = [pa.array(column) for column in np.ascontiguousarray(Y.T)]
        arrays += [words(block.C[:, place[each.name]], each.categories) for each in answered]
        if label:
            arrays.append(words(block.label, label.categories))
        arrays.append(pa.array(noise.ranks(source.key, "row order")))
        raw = pa.py_buffer(np.ascontiguousarray(source.key).tobytes())
        arrays.append(pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), block.n, [None, raw]))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    pairs = zip(X.blocks(), released.rows.blocks(), strict=True)
    return pa.RecordBatchReader.from_batches(schema, (batch(*pair) for pair in pairs))


def words(codes: Codes, categories: Sequence[str]) -> pa.Array:
    """The category of each code, null for -1."""
    import pyarrow as pa

    return pa.array(categories, pa.string()).take(pa.array(codes, mask=codes < 0))
