"""The tables of one run between validation and publication: what is written and read there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import BLOCK, Block
from ppdm_core.model.schema import Categorical, Schema
from warehouse.columns import RESERVED
from warehouse.database import Run
from warehouse.parquet_parts import to_block
from warehouse.publishing.manifest import file_digest
from warehouse.sinks import SINKS
from warehouse.sql import KEY, LABEL, ROW, literal, quote_name
from warehouse.tables import candidate_table, kept_table, raw_table, validated_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ORDER = f"{RESERVED}order"  # keyed: rows are published in this order
INCOMING = f"{RESERVED}incoming"


def create_table(
    db: duckdb.DuckDBPyConnection, table: str, rows: pa.Table | pa.RecordBatchReader
) -> None:
    """Create a table from Arrow data."""
    db.register(INCOMING, rows)
    db.execute(f"create table {table} as from {INCOMING}")
    db.unregister(INCOMING)


def read_validated_blocks(
    db: duckdb.DuckDBPyConnection, run: Run, schema: Schema
) -> Iterator[Block]:
    """Yield the validated records in blocks, in row order."""
    features = [*schema.names, *(column.name for column in schema.categorical)]
    names = ", ".join([*map(quote_name, features), LABEL, ROW, KEY])
    query = f"select {names} from {validated_table(run)} order by {ROW}"
    for batch in db.sql(query).to_arrow_reader(BLOCK):
        yield to_block(with_fixed_size_keys(batch), schema)


def with_fixed_size_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with its last column, the keys, as values of 16 bytes."""
    import pyarrow as pa

    last = batch.num_columns - 1
    return batch.set_column(last, "key", batch.column(last).cast(pa.binary(16)))


def write_kept_records(
    db: duckdb.DuckDBPyConnection, run: Run, records: Ints, halves: Sequence[Ints]
) -> None:
    """Write which records could be released, and which of them are in each half.

    A method may release no row of some of them.
    """
    import pyarrow as pa

    is_in = {half_column(k): np.isin(records, half) for k, half in enumerate(halves)}
    create_table(db, kept_table(run), pa.table({ROW: records, **is_in}))


def read_kept_records(db: duckdb.DuckDBPyConnection, run: Run, halves: int) -> tuple[Ints, Floats]:
    """Return the rows of the records that could be released, and whether each half has them."""
    return read_columns(db, [half_column(k) for k in range(halves)], kept_table(run))


def half_column(k: int) -> str:
    """Return the column that says whether a record is in a half."""
    return f"half_{k}"


def read_original(
    db: duckdb.DuckDBPyConnection, run: Run, schema: Schema
) -> tuple[Floats, Codes, Codes]:
    """Return numbers, category codes and labels of the records that could be released."""
    table = f"{validated_table(run)} where {ROW} in (select {ROW} from {kept_table(run)})"
    _, X = read_columns(db, schema.names, table)
    _, C = read_columns(db, [column.name for column in schema.categorical], table)
    _, label = read_columns(db, [LABEL], table)
    return X, C.astype(np.int32), label[:, 0].astype(np.int32)


def read_validated_columns(db: duckdb.DuckDBPyConnection, run: Run, names: Sequence[str]) -> Floats:
    """Return columns of all validated records in row order, (n, len(names))."""
    return read_columns(db, names, validated_table(run))[1]


def read_released_table(
    db: duckdb.DuckDBPyConnection, table: str, public: PublicParameters
) -> tuple[Ints, Floats, Codes]:
    """Return source rows, numbers and category codes of a draw, ordered by source row."""
    order = f"{ROW}, {ORDER}"
    rows, Y = read_columns(db, public.columns, table, order)
    codes = [code_expression(response.column) for response in public.responses]
    query = f"select {', '.join([ROW, *codes])} from {table} order by {order}"
    found = db.execute(query).fetchnumpy()
    C = np.column_stack([found[r.column.name] for r in public.responses] or [np.zeros((len(Y), 0))])
    return rows, Y, C.astype(np.int32)


def code_expression(column: Categorical) -> str:
    """Return SQL for the code of a category: its place among the categories, -1 for none."""
    words = ", ".join(map(literal, column.categories))
    name = quote_name(column.name)
    return f"coalesce(list_position([{words}], {name}), 0) - 1 as {name}"


def read_candidate(
    db: duckdb.DuckDBPyConnection, run: Run, columns: Sequence[str]
) -> dict[str, Any]:
    """Return columns of the candidate by name, ordered by source row."""
    names = ", ".join(map(quote_name, (ROW, *columns)))
    found = db.execute(f"select {names} from {candidate_table(run)} order by {ROW}")
    return dict(found.fetchnumpy())


def read_candidate_order(db: duckdb.DuckDBPyConnection, run: Run) -> Ints:
    """Return the source row of each row of the candidate, in the order of publication."""
    query = f"select {ROW} from {candidate_table(run)} order by {ORDER}, {ROW}"
    return np.asarray(db.execute(query).fetchnumpy()[ROW])


def write_candidate(
    db: duckdb.DuckDBPyConnection, run: Run, columns: tuple[str, ...], path: Path, sink: str
) -> str:
    """Write the candidate to a file in its keyed order; return the digest of the file."""
    names = ", ".join(map(quote_name, columns))
    query = f"select {names} from {candidate_table(run)} order by {ORDER}, {ROW}"
    SINKS[sink](db, query, path)
    return file_digest(path)


def read_numeric_ids(db: duckdb.DuckDBPyConnection, run: Run, column: str) -> Floats:
    """Return the identifiers in a raw column that are finite numbers."""
    query = f"select try_cast({quote_name(column)} as double) as id from {raw_table(run)}"
    ids = np.ma.filled(db.execute(query).fetchnumpy()["id"].astype(np.float64), np.nan)
    return np.asarray(ids[np.isfinite(ids)])


def read_columns(
    db: duckdb.DuckDBPyConnection, names: Sequence[str], table: str, order: str = ROW
) -> tuple[Ints, Floats]:
    """Return the source rows of a table, and the named columns as (n, len(names))."""
    query = f"select {', '.join(map(quote_name, (ROW, *names)))} from {table} order by {order}"
    columns = db.execute(query).fetchnumpy()
    found = np.empty((len(columns[ROW]), len(names)))
    for i, name in enumerate(names):
        found[:, i] = columns[name]
    return columns[ROW], found
