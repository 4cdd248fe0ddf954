"""Released rows as Arrow data for the warehouse, with categories and original units restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.release import PublicParameters, Released
from ppdm_core.model.rows import Block
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import Scaling
from tasks.sanitize.row_order import rank_rows
from warehouse.columns import Column
from warehouse.ordered_parts import ORDER
from warehouse.parquet_parts import encode_keys
from warehouse.sql import KEY, ROW

if TYPE_CHECKING:
    import pyarrow as pa


def stream_released_rows(
    released: Released,
    noise: Noise,
    label: Column | None,
    undo_scaling: Callable[[Floats], Floats] | None,
    content: bytes,
) -> pa.RecordBatchReader:
    """Return released rows as Arrow, with source row, key, rank, and the label as text.

    ``content`` is the digest of the release's content, which the ranks follow from.

    Of the categorical columns only those that the method releases are written.
    """
    import pyarrow as pa

    categorical = [response.column for response in released.public.responses]
    place = {column.name: j for j, column in enumerate(released.rows.schema.categorical)}
    fields = [pa.field(name, pa.float64()) for name in released.public.columns]
    fields += [pa.field(column.name, pa.string()) for column in categorical]
    fields += [pa.field(label.name, pa.string())] if label else []
    fields += [pa.field(ORDER, pa.uint64()), pa.field(ROW, pa.int64())]
    fields += [pa.field(KEY, pa.binary(16))]
    schema = pa.schema(fields)

    def make_batch(block: Block) -> pa.RecordBatch:
        Y = block.X if undo_scaling is None else undo_scaling(block.X)
        arrays: list[Any] = [pa.array(column) for column in np.ascontiguousarray(Y.T)]
        arrays += [decode(block.C[:, place[each.name]], each.categories) for each in categorical]
        if label:
            arrays.append(decode(block.label, label.categories))
        arrays += [pa.array(rank_rows(block.key, noise, content)), pa.array(block.record)]
        arrays.append(encode_keys(block.key))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(make_batch, released.rows.blocks()))


def make_unscaler(scaling: Scaling, public: PublicParameters) -> Callable[[Floats], Floats]:
    """Return a function from scaled to original units.

    Rounding of the arithmetic must not make a whole number look measured.
    """
    whole = [public.columns.index(name) for name in public.whole]

    def undo_scaling(Y: Floats) -> Floats:
        Y = scaling.undo(Y)
        Y[:, whole] = np.rint(Y[:, whole]) + 0.0  # no -0.0
        return Y

    return undo_scaling


def decode(codes: Codes, categories: Sequence[str]) -> pa.Array:
    """Return the category of each code, null for -1."""
    import pyarrow as pa

    return pa.array(categories, pa.string()).take(pa.array(codes, mask=codes < 0))
