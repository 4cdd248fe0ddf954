"""Released rows on their way to the warehouse: codes become words, scaled numbers original ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.release import Public, Released
from ppdm_core.model.rows import Block
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling
from warehouse.columns import Column
from warehouse.publishing.publish import ORDER
from warehouse.sql import ROW

if TYPE_CHECKING:
    import pyarrow as pa


def reader_of(
    released: Released,
    noise: Noise,
    label: Column | None,
    undo: Callable[[Floats], Floats] | None,
) -> pa.RecordBatchReader:
    """Released rows as Arrow, with the record they were made from, a keyed order, label in words.

    Of the categorical columns only those that the method answers for are written.
    """
    import pyarrow as pa

    answered = [response.column for response in released.public.responses]
    place = {column.name: j for j, column in enumerate(released.rows.schema.categorical)}
    fields = [pa.field(name, pa.float64()) for name in released.public.columns]
    fields += [pa.field(column.name, pa.string()) for column in answered]
    fields += [pa.field(label.name, pa.string())] if label else []
    fields += [pa.field(ORDER, pa.uint64()), pa.field(ROW, pa.int64())]
    schema = pa.schema(fields)

    def batch(block: Block) -> pa.RecordBatch:
        Y = block.X if undo is None else undo(block.X)
        arrays: list[Any] = [pa.array(column) for column in np.ascontiguousarray(Y.T)]
        arrays += [words(block.C[:, place[each.name]], each.categories) for each in answered]
        if label:
            arrays.append(words(block.label, label.categories))
        arrays += [pa.array(noise.ranks(block.key, "row order")), pa.array(block.record)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(batch, released.rows.blocks()))


def original_units(scaling: Scaling, public: Public) -> Callable[[Floats], Floats]:
    """Undoes the scaling; its rounding must not make a whole number look measured."""
    whole = [public.columns.index(name) for name in public.whole]

    def undo(Y: Floats) -> Floats:
        Y = scaling.undo(Y)
        Y[:, whole] = np.rint(Y[:, whole]) + 0.0  # no -0.0
        return Y

    return undo


def words(codes: Codes, categories: Sequence[str]) -> pa.Array:
    """The category of each code, null for -1."""
    import pyarrow as pa

    return pa.array(categories, pa.string()).take(pa.array(codes, mask=codes < 0))
