"""The records behind the rows of a candidate, in the order of publication, for the leak scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.scaling import Scaling
from warehouse.home import create_private, translate_disk_errors
from warehouse.ordered_parts import ORDER, OrderedParts, partition_rows
from warehouse.publishing.expected_content import OriginalRows
from warehouse.sanitized_tables import RANGE_ROWS, read_ranges
from warehouse.sql import KEY, ROW, count_rows
from warehouse.tables import candidate_table, validated_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from warehouse.database import Run

IDS = "ids.arrow"


@dataclass(frozen=True, eq=False)
class StoredOriginals:
    """Records in the work folder of a release."""

    parts: OrderedParts
    features: tuple[str, ...]  # numeric
    categorical: tuple[str, ...]
    scaling: Scaling
    ids: Path | None  # numbers in the identifiers of all records; None: there is no identifier

    def blocks(self) -> Iterator[OriginalRows]:
        for table in self.parts.tables():
            X = stack_columns(table, self.features, np.float64)
            yield OriginalRows(
                (X, (X - self.scaling.offset) / self.scaling.unit),
                stack_columns(table, self.categorical, np.int32),
                table.column(ROW).to_numpy().astype(np.float64),
            )

    def others(self) -> Iterator[tuple[int, Floats]]:
        import pyarrow as pa

        if self.ids is None:
            return
        with self.ids.open("rb") as file, pa.ipc.open_stream(file) as reader:
            for batch in reader:
                for k, column in enumerate(batch.columns):
                    numbers = column.drop_null().to_numpy(zero_copy_only=False)
                    yield k, numbers[np.isfinite(numbers)]


def store_originals(
    db: duckdb.DuckDBPyConnection,
    run: Run,
    features: Sequence[str],
    categorical: Sequence[str],
    ids: Sequence[str],
    scaling: Scaling,
    folder: Path,
) -> StoredOriginals:
    """Write the records of a candidate to a folder, each at the place of its row."""
    n, path = count_rows(db, candidate_table(run)), folder / IDS
    with open_ids(path, ids) as write_ids:
        rows = stream_originals(db, run, features, categorical, ids, write_ids)
        parts = partition_rows(rows, n, folder / "originals")
    return StoredOriginals(
        parts, tuple(features), tuple(categorical), scaling, path if ids else None
    )


def stream_originals(
    db: duckdb.DuckDBPyConnection,
    run: Run,
    features: Sequence[str],
    categorical: Sequence[str],
    ids: Sequence[str],
    write_ids: Callable[[pa.Table], None],
) -> pa.RecordBatchReader:
    """Return the record of each row of a candidate, with the rank of the row.

    Validated rows are numbered from 0 without gaps, so that both tables are read range by range.
    The identifiers of all records go to ``write_ids`` on the way.
    """
    import pyarrow as pa

    fields = [pa.field(name, pa.float64()) for name in features]
    fields += [pa.field(name, pa.int32()) for name in categorical]
    fields += [pa.field(ORDER, pa.uint64()), pa.field(ROW, pa.int64()), pa.field(KEY, pa.binary())]
    schema, values = pa.schema(fields), [*features, *categorical]

    def pair() -> Iterator[pa.RecordBatch]:
        released = read_ranges(db, candidate_table(run), (ORDER, ROW, KEY))
        records = read_ranges(db, validated_table(run), (*values, *ids))
        for k, (rows, found) in enumerate(zip_longest(released, records)):
            write_ids(found.select(range(len(values), found.num_columns)))
            if rows is not None:
                places = rows.column(ROW).to_numpy() - k * RANGE_ROWS
                taken = found.select(range(len(values))).take(places)
                columns = [*taken.columns, *rows.columns]
                yield from pa.Table.from_arrays(columns, schema=schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, pair())


@contextmanager
def open_ids(path: Path, ids: Sequence[str]) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that writes the numbers in identifiers to a file, if there are any."""
    import pyarrow as pa

    if not ids:
        yield lambda rows: None
        return
    schema = pa.schema([pa.field(name, pa.float64()) for name in ids])
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        translate_disk_errors(path),
        create_private(path) as file,
        pa.ipc.new_stream(file, schema) as writer,
    ):
        yield lambda rows: writer.write_table(rows.cast(schema))


def stack_columns(table: pa.Table, names: Sequence[str], kind: Any) -> Any:
    """Return columns side by side, (m, columns)."""
    found = np.empty((table.num_rows, len(names)), dtype=kind)
    for j, name in enumerate(names):
        found[:, j] = table.column(name).to_numpy()
    return found
