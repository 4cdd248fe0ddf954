"""Parquet files that hold nothing except cells: no statistics, dictionaries or metadata."""

from __future__ import annotations

from io import RawIOBase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

ROW_GROUP_ROWS = 65_536  # fixed, so that the same rows give the same bytes


def write(db: duckdb.DuckDBPyConnection, query: str, file: RawIOBase) -> None:
    """Write the result of a query to an open file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # On the caller's own connection: a cursor would not see what its transaction wrote.
    reader = db.sql(query).to_arrow_reader(ROW_GROUP_ROWS)
    fields = [pa.field(field.name, field.type) for field in reader.schema]
    with pq.ParquetWriter(
        file,
        pa.schema(fields),
        compression="zstd",
        write_statistics=False,
        use_dictionary=False,
        store_schema=False,
    ) as writer:
        held: list[pa.RecordBatch] = []
        for batch in reader:
            held.append(batch)
            if sum(part.num_rows for part in held) >= ROW_GROUP_ROWS:
                table = pa.Table.from_batches(held)
                writer.write_table(table.slice(0, ROW_GROUP_ROWS), row_group_size=ROW_GROUP_ROWS)
                held = table.slice(ROW_GROUP_ROWS).to_batches()
        if held:
            writer.write_table(pa.Table.from_batches(held), row_group_size=ROW_GROUP_ROWS)
