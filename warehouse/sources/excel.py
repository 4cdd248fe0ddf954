"""Sheets of Excel workbooks: one header row, and below it one record in each row."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar

from ppdm_core.model.errors import BadInput
from warehouse.columns import RESERVED, Source
from warehouse.sources._reader import BUCKET_OPTIONS, FileReader, Option
from warehouse.sources.checks import check_header

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ROWS = f"{RESERVED}sheet"
BATCH_ROWS = 10_000
MAX_TITLE_ROWS = 20  # in which the names are looked for
NUMBER, DATE, YES_NO, TEXT = "number", "date", "yes or no", "text"
Row = Sequence[Any]


class Excel(FileReader):
    """Sheets of Excel workbooks."""

    name = "excel"
    endings = (".xlsx", ".xlsm")
    has_header_line = True
    options: ClassVar[Mapping[str, Option]] = {
        **BUCKET_OPTIONS,
        "sheet": Option("Name of the sheet; needed if there are several.", max_characters=31),
        "header_row": Option("Number of the row with the names, from 1.", max_characters=7),
    }

    table_option = "sheet"

    def guess_options(self, source: Source) -> dict[str, str]:
        """Return the row of the names if titles are above it, of one local file."""
        if not os.path.isfile(source.path):
            return {}
        try:
            row = _find_header_row(source)
        except _reading_errors():
            raise self.describe_bad_file(source) from None
        return {} if row in (None, 1) else {"header_row": str(row)}

    def check_options(self, path: str, options: Mapping[str, str]) -> None:
        super().check_options(path, options)
        text = options.get("header_row", "1")
        if not text.isdecimal() or int(text) < 1:
            raise BadInput(
                "The 'header_row' key of [source] is not the number of a row.",
                remedy='Write it as a text: header_row = "3".',
            )

    def select_rows(self, db: duckdb.DuckDBPyConnection, source: Source) -> str:
        import pyarrow as pa

        try:
            names, kinds = _survey(source)
            _check_formulas(source)
        except BadInput:
            raise
        except _reading_errors():
            raise self.describe_bad_file(source) from None
        check_header(list(names.values()), source)
        schema = pa.schema([(names[place], _arrow_type(kinds[place])) for place in names])
        batches = _read_batches(source, list(names), kinds, schema)
        db.register(ROWS, pa.RecordBatchReader.from_batches(schema, batches))
        return f"select * from {ROWS}"


def _reading_errors() -> tuple[type[Exception], ...]:
    """Return what openpyxl raises for a file that is no workbook."""
    import zipfile
    from xml.etree.ElementTree import ParseError

    from openpyxl.utils.exceptions import InvalidFileException

    return (InvalidFileException, zipfile.BadZipFile, ParseError, KeyError, ValueError, OSError)


def _read_rows(source: Source) -> Iterator[Row]:
    """Yield the rows of the sheet from the header on, as the values that Excel last showed."""
    for row in _read_cells(source, data_only=True):
        yield [cell.value for cell in row]


def _read_cells(source: Source, *, data_only: bool) -> Iterator[Row]:
    """Yield the rows of the sheet from the header on: results of formulas, or formulas."""
    with closing(_open_book(source.path, data_only=data_only)) as book:
        sheets = {sheet.title: sheet for sheet in book.worksheets}  # without charts
        sheet = sheets[_choose_sheet(list(sheets), source)]
        sheet.reset_dimensions()  # other programs write wrong ones, and rows beyond them are lost
        yield from sheet.iter_rows(min_row=int(source.options.get("header_row", "1")))


def _open_book(path: str, *, data_only: bool) -> Any:
    import openpyxl

    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=data_only)
    except (AttributeError, TypeError):  # for parts that are missing, such as an empty chart
        raise ValueError("not a workbook") from None


def _check_formulas(source: Source) -> None:
    """Raise BadInput if a formula has no stored result: its cell would be read as empty.

    Programs that do not calculate write such files. An empty text is a result.
    """
    results = _read_cells(source, data_only=True)
    for row, shown in zip(_read_cells(source, data_only=False), results, strict=True):
        for place, (cell, result) in enumerate(zip(row, shown, strict=True)):
            if cell.data_type == "f" and result.value is None and result.data_type != "str":
                raise BadInput(
                    f"The sheet in {source.name} has formulas without results in column "
                    f"{_letter(place)}.",
                    file=source.path,
                    remedy="Open the file in Excel or LibreOffice, save it there, and try again.",
                )


def _choose_sheet(names: Sequence[str], source: Source) -> str:
    wanted = source.options.get("sheet")
    if wanted in names:
        return str(wanted)
    if wanted is None and len(names) == 1:
        return names[0]
    what = "has several sheets" if wanted is None else f"has no sheet '{wanted}'"
    if not names:
        raise BadInput(
            f"The source {source.name} has charts and no sheet with cells.",
            file=source.path,
            remedy="Check 'path' in [source].",
        )
    raise BadInput(
        f"The source {source.name} {what}.",
        file=source.path,
        remedy="Set 'sheet' in [source], or --table of `ppdm init`, to one of: "
        f"{', '.join(names)}.",
    )


def _find_header_row(source: Source) -> int | None:
    """Return the first row with a name for every column that has cells below it, if there is one.

    Names are texts, and a column without any text must be below: so a record is never taken for
    the names, which a draft shows.
    """
    tops: list[Row] = []
    last: dict[int, int] = {}  # place -> last row with a cell
    values: dict[int, int] = {}  # place -> last row with a number or date
    for number, row in enumerate(_read_rows(source), start=1):
        if number <= MAX_TITLE_ROWS:
            tops.append(row)
        for place, cell in enumerate(row):
            if not _is_empty(cell):
                last[place] = number
                if _find_kind(cell) in (NUMBER, DATE):
                    values[place] = number
    for number, row in enumerate(tops, start=1):
        names = {place for place, cell in enumerate(row) if not _is_empty(cell)}
        needed = {place for place, end in last.items() if end > number}
        is_text = all(_find_kind(row[place]) == TEXT for place in names)
        if needed and names >= needed and is_text and max(values.values(), default=0) > number:
            return number
    return None


def _survey(source: Source) -> tuple[dict[int, str], dict[int, str]]:
    """Return name and kind of each column by its place; empty columns are left out."""
    rows = _read_rows(source)
    header: Row = next(rows, ())
    names = {i: str(cell).strip() for i, cell in enumerate(header) if not _is_empty(cell)}
    kinds: dict[int, set[str]] = {}
    for row in rows:
        for place, cell in enumerate(row):
            if not _is_empty(cell):
                kinds.setdefault(place, set()).add(_find_kind(cell))
    number = int(source.options.get("header_row", "1"))
    nameless = [place for place in kinds if place not in names]
    if nameless:
        raise BadInput(
            f"Row {number} of the sheet in {source.name} is not a header: it names "
            f"{len(names)} of {len(names | kinds)} columns, and not column "
            f"{_letter(min(nameless))}.",
            file=source.path,
            remedy="Name the row of the header with 'header_row', or give every column its own "
            "name in one row, without merged cells.",
        )
    return names, {place: _join_kinds(kinds.get(place, set())) for place in names}


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _find_kind(cell: Any) -> str:
    if isinstance(cell, bool):
        return YES_NO
    if isinstance(cell, int | float):
        return NUMBER
    return DATE if isinstance(cell, datetime.datetime) else TEXT


def _join_kinds(found: Iterable[str]) -> str:
    kinds = set(found)
    return kinds.pop() if len(kinds) == 1 else TEXT


def _letter(place: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(place + 1))


def _arrow_type(kind: str) -> pa.DataType:
    import pyarrow as pa

    types = {NUMBER: pa.float64(), DATE: pa.timestamp("s"), YES_NO: pa.bool_(), TEXT: pa.string()}
    return types[kind]


def _convert(cell: Any, kind: str) -> Any:
    if _is_empty(cell):
        return None
    if kind != TEXT:
        return float(cell) if kind == NUMBER else cell
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))  # as the sheet shows it
    return str(cell)


def _read_batches(
    source: Source, places: Sequence[int], kinds: Mapping[int, str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows below the header; empty ones are left out."""
    import pyarrow as pa

    held: list[list[Any]] = []
    rows = _read_rows(source)
    next(rows, None)
    for row in rows:
        cells = [_convert(row[i] if i < len(row) else None, kinds[i]) for i in places]
        if any(cell is not None for cell in cells):
            held.append(cells)
        if len(held) == BATCH_ROWS:
            yield pa.record_batch(list(map(list, zip(*held, strict=True))), schema=schema)
            held = []
    if held:
        yield pa.record_batch(list(map(list, zip(*held, strict=True))), schema=schema)
