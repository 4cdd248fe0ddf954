"""Parquet files that hold nothing except cells: no statistics, dictionaries or metadata.

`data.parquet` has all rows. The sink adds a file for each value of a column beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from ppdm_core.model.errors import BadInput, Refused
from warehouse.sinks._sink import FileSink
from warehouse.sources import Option

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from warehouse.columns import Column

ROW_GROUP_ROWS = 65_536  # fixed, so that the same rows give the same bytes
PARTITION = "partition"  # key of the sink
MAX_NAME_BYTES = 255  # of a file
ONLY_CELLS: dict[str, Any] = {
    "compression": "zstd",
    "write_statistics": False,
    "use_dictionary": False,
    "store_schema": False,
}


class Parquet(FileSink):
    """Parquet files, one for each value of a column."""

    name = "parquet"
    options: ClassVar[Mapping[str, Option]] = {
        PARTITION: Option("Label or categorical feature; each of its values gets a file.", True)
    }

    def check_columns(self, columns: Sequence[Column], options: Mapping[str, str]) -> None:
        wanted = options[PARTITION]
        found = next((each for each in columns if each.name == wanted), None)
        if found is None or not found.categories or found.role not in ("feature", "label"):
            raise BadInput(
                f"The parquet sink cannot be partitioned by '{wanted}': it is not a label or a "
                "categorical feature.",
                remedy="Correct 'partition' in [[sinks]].",
            )
        if any(len(_name_file(wanted, each)) > MAX_NAME_BYTES for each in found.categories):
            raise BadInput(
                "A category is too long for the name of a file of the parquet sink.",
                column=wanted,
                remedy="Partition by another column, or shorten the category in the source.",
            )

    def write(self, table: pa.Table, folder: Path, options: Mapping[str, str]) -> None:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        column = options[PARTITION]
        if column not in table.column_names:
            raise Refused(
                "The parquet sink is partitioned by a column that the method does not release.",
                remedy="Correct 'partition' in [[sinks]].",
            )
        for value in pc.unique(table[column]).to_pylist():
            is_here = pc.is_null(table[column]) if value is None else pc.equal(table[column], value)
            rows = table.filter(pc.fill_null(is_here, False)).combine_chunks()
            path = folder / _name_file(column, value)
            pq.write_table(rows, path, row_group_size=ROW_GROUP_ROWS, **ONLY_CELLS)

    def read(self, folder: Path, options: Mapping[str, str]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        paths = sorted(folder.glob("data.*.parquet"))
        return pa.concat_tables([pq.ParquetFile(path).read() for path in paths])


def _name_file(column: str, value: str | None) -> str:
    """Return the name of the file of a value; other signs than letters and digits are escaped."""
    value_part = "" if value is None else f"={quote(value, safe='')}"
    return f"data.{quote(column, safe='')}{value_part}.parquet"


def write(db: duckdb.DuckDBPyConnection, query: str, file: RawIOBase) -> None:
    """Write the result of a query to an open file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # On the caller's own connection: a cursor would not see what its transaction wrote.
    reader = db.sql(query).to_arrow_reader(ROW_GROUP_ROWS)
    fields = [pa.field(field.name, field.type) for field in reader.schema]
    with pq.ParquetWriter(file, pa.schema(fields), **ONLY_CELLS) as writer:
        held: list[pa.RecordBatch] = []
        for batch in reader:
            held.append(batch)
            if sum(part.num_rows for part in held) >= ROW_GROUP_ROWS:
                table = pa.Table.from_batches(held)
                writer.write_table(table.slice(0, ROW_GROUP_ROWS), row_group_size=ROW_GROUP_ROWS)
                held = table.slice(ROW_GROUP_ROWS).to_batches()
        if held:
            writer.write_table(pa.Table.from_batches(held), row_group_size=ROW_GROUP_ROWS)
