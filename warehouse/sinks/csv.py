"""A CSV file beside the Parquet file; numbers are written with all their digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, ErrorList
from warehouse.sinks._sink import FileSink

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

    def write(self, table: pa.Table, folder: Path, options: Mapping[str, str]) -> None:
        import pyarrow.csv

        pyarrow.csv.write_csv(table, folder / FILE)

    def read(self, folder: Path, options: Mapping[str, str]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyarrow import csv

        schema = pq.read_schema(folder / "data.parquet")
        convert = csv.ConvertOptions(
            column_types={field.name: field.type for field in schema},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        parse = csv.ParseOptions(newlines_in_values=True)
        try:
            return csv.read_csv(folder / FILE, parse_options=parse, convert_options=convert)
        except pa.ArrowInvalid:
            return pa.table({})
