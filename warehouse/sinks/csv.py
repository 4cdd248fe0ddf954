"""A CSV file beside the Parquet file; numbers are written with all their digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, ErrorList
from warehouse.sinks._sink import FileSink
from warehouse.sinks.parquet import DATA, read_schema, read_tables

if TYPE_CHECKING:
    import pyarrow as pa

    from warehouse.columns import Column

FILE = "data.csv"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class Csv(FileSink):
    """CSV files."""

    name = "csv"

    def check_columns(self, columns: Sequence[Column], options: Mapping[str, str]) -> None:
        """Refuse text that a spreadsheet would run as a formula."""
        errors = ErrorList()
        for column in columns:
            if column.role not in ("feature", "label"):
                continue
            if any(text.startswith(FORMULA_STARTS) for text in (column.name, *column.categories)):
                errors.add(
                    BadInput(
                        "The name or a category of the column begins with = + - @ or a tab, which "
                        "spreadsheets run as a formula.",
                        column=column.name,
                        remedy="Rename it in the source, or leave the csv sink out.",
                    )
                )
        errors.raise_all()

    def write(self, folder: Path, options: Mapping[str, str]) -> None:
        from pyarrow import csv

        with csv.CSVWriter(folder / FILE, read_schema(folder / DATA)) as writer:
            for table in read_tables(folder / DATA):
                writer.write_table(table)

    def read(self, folder: Path, options: Mapping[str, str]) -> Iterator[pa.Table]:
        import pyarrow as pa
        from pyarrow import csv

        convert = csv.ConvertOptions(
            column_types={field.name: field.type for field in read_schema(folder / DATA)},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        parse = csv.ParseOptions(newlines_in_values=True)
        path = folder / FILE
        with csv.open_csv(path, parse_options=parse, convert_options=convert) as batches:
            for batch in batches:
                yield pa.Table.from_batches([batch])
