"""Parquet files that hold nothing except cells: no statistics, dictionaries or metadata.

`data.parquet` has all rows. The sink adds a file for each value of a column beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import RawIOBase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar
from urllib.parse import quote

from ppdm_core.model.errors import BadInput, Refused
from warehouse.sinks._sink import FileSink
from warehouse.sources import Option

if TYPE_CHECKING:
    import pyarrow as pa

    from warehouse.columns import Column

ROW_GROUP_ROWS = 65_536  # fixed, so that the same rows give the same bytes
BATCH_ROWS = 16_384  # in memory at a time
DATA = "data.parquet"
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

    def write(self, folder: Path, options: Mapping[str, str]) -> None:
        column, data = options[PARTITION], folder / DATA
        if column not in read_schema(data).names:
            raise Refused(
                "The parquet sink is partitioned by a column that the method does not release.",
                remedy="Correct 'partition' in [[sinks]].",
            )
        values = {each: None for table in read_tables(data) for each in _list_values(table, column)}
        for value in values:  # a pass for each, so that memory does not grow with their number
            with (folder / _name_file(column, value)).open("wb") as file:
                write((_select(table, column, value) for table in read_tables(data)), file)

    def read(self, folder: Path, options: Mapping[str, str]) -> Iterator[pa.Table]:
        import pyarrow as pa

        schema = read_schema(folder / DATA)
        for path in sorted(folder.glob("data.*.parquet")):
            for table in read_tables(path):
                yield pa.Table.from_batches(table.to_batches(), schema)


def read_schema(path: Path) -> pa.Schema:
    """Return names and types of the columns of a Parquet file."""
    import pyarrow.parquet as pq

    return pq.read_schema(path)


def read_tables(path: Path) -> Iterator[pa.Table]:
    """Yield the rows of a Parquet file in blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            yield pa.Table.from_batches([batch])


def _list_values(table: pa.Table, column: str) -> list[str | None]:
    import pyarrow.compute as pc

    values: list[str | None] = pc.unique(table[column]).to_pylist()
    return values


def _select(table: pa.Table, column: str, value: str | None) -> pa.Table:
    """Return the rows with a value; None: without one."""
    import pyarrow.compute as pc

    is_here = pc.is_null(table[column]) if value is None else pc.equal(table[column], value)
    return table.filter(pc.fill_null(is_here, False))


def _name_file(column: str, value: str | None) -> str:
    """Return the name of the file of a value; other signs than letters and digits are escaped."""
    value_part = "" if value is None else f"={quote(value, safe='')}"
    return f"data.{quote(column, safe='')}{value_part}.parquet"


def write(tables: Iterable[pa.Table], file: BinaryIO | RawIOBase) -> None:
    """Write rows to an open file; the bytes do not depend on how the tables divide them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rest = iter(tables)
    first = next(rest)
    fields = [pa.field(field.name, field.type) for field in first.schema]
    with pq.ParquetWriter(file, pa.schema(fields), **ONLY_CELLS) as writer:
        held = first
        for table in chain(rest, [first.slice(0, 0)]):
            while held.num_rows >= ROW_GROUP_ROWS:
                group = held.slice(0, ROW_GROUP_ROWS).combine_chunks()
                writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
                held = held.slice(ROW_GROUP_ROWS)
            held = pa.concat_tables([held, table])
        if held.num_rows:
            writer.write_table(held.combine_chunks(), row_group_size=ROW_GROUP_ROWS)
