from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest
from openpyxl.chart import BarChart

from ppdm_core.model.errors import BadInput
from warehouse.columns import Source
from warehouse.sources import SOURCES
from warehouse.sql import column_types

READER = SOURCES["excel"]
DAY = datetime.datetime(2024, 2, 29)
ROWS = [("id", "age", "since", "active", "code"), (1, 41, DAY, True, 7), (2, 42.5, DAY, False, "x")]


def write(folder: Path, rows: Sequence[Sequence[Any]], merged: str = "") -> str:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    if merged:
        book.active.merge_cells(merged)
    book.save(folder / "t.xlsx")
    return str(folder / "t.xlsx")


def load(path: str, **options: str) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    with duckdb.connect(":memory:") as db:
        READER.load(db, Source("excel", path, options), "main.t")
        rows = db.execute("select * exclude (__ppdm_row) from main.t order by rowid").fetchall()
        return column_types(db, "main.t"), rows


def read_error(path: str, **options: str) -> str:
    with pytest.raises(BadInput) as caught:
        load(path, **options)
    assert caught.value.remedy and "CANARY" not in str(caught.value)
    return caught.value.message


def test_load_sheet_with_its_types(tmp_path: Path) -> None:
    types, rows = load(write(tmp_path, ROWS))
    assert list(types) == list(ROWS[0])
    assert rows == [(1.0, 41.0, DAY, True, "7"), (2.0, 42.5, DAY, False, "x")]


def test_load_empty_columns_and_rows_left_out(tmp_path: Path) -> None:
    rows = [(None, "a", None, "b", None), (None, 1, None, 2, None), (), (None, 3, " ", 4, None)]
    assert load(write(tmp_path, rows))[1] == [(1.0, 2.0), (3.0, 4.0)]


def test_load_title_row_clear_sentence_then_header_row(tmp_path: Path) -> None:
    path = write(tmp_path, [("CANARY visits 2024",), (), *ROWS])
    assert "Row 1 of the sheet in t.xlsx is not a header" in read_error(path)
    assert len(load(path, header_row="3")[1]) == 2


def test_load_merged_header_clear_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, [("id", "CANARY", None), (1, 2, 3), (4, 5, 6)], merged="B1:C1")
    assert "it names 2 of 3 columns, and not column C" in read_error(path)


def test_load_several_sheets_needs_a_choice(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    book = openpyxl.load_workbook(path)
    book.create_sheet("notes")
    book.save(path)
    assert "has several sheets" in read_error(path)
    assert "has no sheet 'none'" in read_error(path, sheet="none")
    assert len(load(path, sheet="Sheet")[1]) == 2


@pytest.mark.parametrize("text", ["0", "a", "-1", "1.5"])
def test_check_options_header_row_refused(text: str) -> None:
    with pytest.raises(BadInput, match="header_row"):
        READER.check_options("t.xlsx", {"header_row": text})


def change_sheet(path: str, old: str, new: str) -> None:
    """Replace the one match of a pattern in the XML of the first sheet."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    text, count = re.subn(old, new, parts["xl/worksheets/sheet1.xml"].decode())
    assert count == 1
    parts["xl/worksheets/sheet1.xml"] = text.encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


@pytest.mark.parametrize("wrong", ["A1", "A1:B2", "A1:Z2"])
def test_load_wrong_dimension_all_cells_read(tmp_path: Path, wrong: str) -> None:
    path = write(tmp_path, [*ROWS, (), *ROWS[1:]])
    expected = load(path)
    assert len(expected[1]) == 4 and len(expected[0]) == 5
    change_sheet(path, r'<dimension ref="[^"]*" */>', f'<dimension ref="{wrong}"/>')
    assert load(path) == expected
    assert READER.read_names(Source("excel", path)) == list(ROWS[0])


def test_load_chart_sheet_refused_and_not_listed(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    book = openpyxl.load_workbook(path)
    book.create_chartsheet("chart").add_chart(BarChart())
    book.save(path)
    assert len(load(path)[1]) == 2
    with pytest.raises(BadInput, match="has no sheet 'chart'") as caught:
        load(path, sheet="chart")
    assert caught.value.remedy.endswith("one of: Sheet.")


def test_load_only_charts_refused(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.remove(book.active)
    book.create_chartsheet("chart").add_chart(BarChart())
    book.save(tmp_path / "t.xlsx")
    for options in ({}, {"sheet": "chart"}):
        assert "no sheet" in read_error(str(tmp_path / "t.xlsx"), **options)


def test_load_chart_sheet_without_chart_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    book = openpyxl.load_workbook(path)
    book.create_chartsheet("chart")
    book.save(path)
    assert "not a table that can be read as Excel" in read_error(path)


FORMULAS = [("a", "b"), (1, "=A2*2"), (2, 4)]


def test_load_formula_without_result_refused(tmp_path: Path) -> None:
    path = write(tmp_path, FORMULAS)
    assert "has formulas without results in column B" in read_error(path)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('<c r="B2"><f>A2*2</f><v>2</v></c>', [(1.0, 2.0), (2.0, 4.0)]),
        ('<c r="B2" t="str"><f>IF(A2,"")</f><v></v></c>', [(1.0, None), (2.0, 4.0)]),
    ],
)
def test_load_formula_with_result_read(
    tmp_path: Path, cell: str, expected: list[tuple[Any, ...]]
) -> None:
    path = write(tmp_path, FORMULAS)
    change_sheet(path, r'<c r="B2".*?</c>', cell)
    assert load(path)[1] == expected


def test_load_text_like_a_formula_read(tmp_path: Path) -> None:
    path = write(tmp_path, FORMULAS)
    change_sheet(path, r'<c r="B2".*?</c>', '<c r="B2" t="inlineStr"><is><t>=x</t></is></c>')
    assert load(path)[1] == [(1.0, "=x"), (2.0, "4")]
