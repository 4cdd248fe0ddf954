"""The tables of one run between validation and publication: what is written and read there."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ppdm_core.model.arrays import Ints
from ppdm_core.model.rows import BLOCK, Block
from ppdm_core.model.schema import Schema
from warehouse.columns import RESERVED
from warehouse.database import Run
from warehouse.home import create_private, sync, translate_disk_errors
from warehouse.ordered_parts import ORDER, order_rows
from warehouse.parquet_parts import to_block
from warehouse.sinks import parquet
from warehouse.sql import KEY, LABEL, ROW, quote_name
from warehouse.table_digest import content_digest
from warehouse.tables import candidate_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

INCOMING = f"{RESERVED}incoming"
CHOSEN = f"{RESERVED}chosen"
RANGE_ROWS = 8 * BLOCK  # of a table that are read at a time


def create_table(
    db: duckdb.DuckDBPyConnection, table: str, rows: pa.Table | pa.RecordBatchReader
) -> None:
    """Create a table from Arrow data."""
    db.register(INCOMING, rows)
    db.execute(f"create table {table} as from {INCOMING}")
    db.unregister(INCOMING)


def read_validated_blocks(
    db: duckdb.DuckDBPyConnection, table: str, schema: Schema
) -> Iterator[Block]:
    """Yield the records of a validated table in blocks, in row order."""
    features = [*schema.names, *(column.name for column in schema.categorical)]
    for rows in read_ranges(db, table, (*features, LABEL, ROW, KEY)):
        for batch in with_fixed_size_keys(rows).to_batches(BLOCK):
            yield to_block(batch, schema)


def read_ranges(
    db: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield columns of a table in ranges of ``RANGE_ROWS`` source rows, in the order of these.

    Tables are written in that order, so that a range is found by the statistics of their blocks.
    """
    names = ", ".join(map(quote_name, columns))
    (last,) = db.execute(f"select coalesce(max({ROW}), -1) from {table}").fetchall()[0]
    for start in range(0, last + 1, RANGE_ROWS):
        query = (
            f"select {names} from {table} "
            f"where {ROW} >= {start} and {ROW} < {start + RANGE_ROWS} order by {ROW}"
        )
        yield db.sql(query).to_arrow_table().combine_chunks()


def with_fixed_size_keys(rows: pa.Table) -> pa.Table:
    """Return rows with their last column, the keys, as values of 16 bytes."""
    import pyarrow as pa

    last = rows.num_columns - 1
    return rows.set_column(last, KEY, rows.column(last).cast(pa.binary(16)))


def read_candidate(
    db: duckdb.DuckDBPyConnection, run: Run, columns: Sequence[str], records: str | None = None
) -> dict[str, Any]:
    """Return columns of the candidate by name, ordered by source row.

    ``records``: a selection of its rows, from ``select_source_rows``; None: all of them.
    """
    names = ", ".join(map(quote_name, (ROW, *columns)))
    table = candidate_table(run) if records is None else records
    return dict(db.execute(f"select {names} from {table} order by {ROW}").fetchnumpy())


def select_source_rows(db: duckdb.DuckDBPyConnection, table: str, rows: Ints) -> str:
    """Return SQL for the rows of a table that were made from these rows of the source."""
    import pyarrow as pa

    db.register(CHOSEN, pa.table({ROW: rows}))
    return f"(select * from {table} where {ROW} in (select {ROW} from {CHOSEN}))"


def write_candidate(
    rows: pa.RecordBatchReader, n: int, columns: Sequence[str], path: Path, work: Path
) -> str:
    """Write columns of ``n`` rows to a private file in the order of ranks; return its digest.

    ``work`` is the folder of the run's work files.
    """
    with (
        order_rows(select_columns(rows, (*columns, ORDER, KEY)), n, work / "order") as ordered,
        translate_disk_errors(path),
        create_private(path) as file,
    ):
        digesting = DigestingFile(file)
        parquet.write((each.select(columns) for each in ordered.tables()), digesting)
    sync(path)
    return digesting.hexdigest()


def select_columns(rows: pa.RecordBatchReader, columns: Sequence[str]) -> pa.RecordBatchReader:
    """Return some columns of a stream of rows."""
    import pyarrow as pa

    schema = pa.schema([rows.schema.field(name) for name in columns])
    batches = (batch.select(list(columns)) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, batches)


def digest_candidate(db: duckdb.DuckDBPyConnection, run: Run) -> str:
    """Return the digest of the candidate's table: its rows with their records and their order."""
    names = [name for (name, *_) in db.execute(f"describe {candidate_table(run)}").fetchall()]
    return content_digest(db, candidate_table(run), names)


class DigestingFile(io.RawIOBase):
    """A file that computes the SHA-256 digest of what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def hexdigest(self) -> str:
        """Return the digest of everything that was written."""
        return self._digest.hexdigest()
