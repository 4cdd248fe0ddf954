"""Writers of files that DuckDB does not write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


def write_excel(table: pa.Table, path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("table")
    sheet.append(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        sheet.append(row)
    book.save(path)


def write_sas(table: pa.Table, path: Path) -> None:
    import pyreadstat

    pyreadstat.write_xport(table.to_pandas(), path, file_format_version=8)


def write_spss(table: pa.Table, path: Path) -> None:
    import pyreadstat

    pyreadstat.write_sav(table.to_pandas(), path)


def write_stata(table: pa.Table, path: Path) -> None:
    import pyreadstat

    pyreadstat.write_dta(table.to_pandas(), path)
