"""Test rows of a site: what is read of them, and which files are refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from tasks.sites.model_error import read_test_rows

COLUMNS = tuple(
    SimpleNamespace(name=name, role="feature", low=0.0, high=1.0) for name in ("x", "y")
)
CONTEXT: Any = SimpleNamespace(
    columns=COLUMNS, label=SimpleNamespace(name="mood", categories=("calm", "tense"))
)
ROWS = [f"{i / 20},0.5,{('calm', 'tense')[i % 2]}" for i in range(20)]
HEADER = "x,y,mood"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "test.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_read_test_rows_columns_in_another_order_with_others_between(tmp_path: Path):
    lines = [f"{mood},note,{y},{x}" for x, y, mood in (row.split(",") for row in ROWS)]
    X, codes = read_test_rows(write(tmp_path, "\ufeffmood,notes,y,x", *lines), CONTEXT)
    assert np.array_equal(X[:, 0], np.arange(20) / 20) and (X[:, 1] == 0.5).all()
    assert codes.tolist() == [0, 1] * 10


def test_read_test_rows_values_beyond_the_bounds_are_moved_to_them(tmp_path: Path):
    X, _ = read_test_rows(write(tmp_path, HEADER, *ROWS[:19], "7.5,-1,calm"), CONTEXT)
    assert X[-1].tolist() == [1.0, 0.0]


BAD: dict[str, tuple[list[str], str, str | None]] = {
    "no column": (["x,mood", *ROWS], "have no column 'y'", "y"),
    "no label": (["x,y,state", *ROWS], "have no column 'mood'", "mood"),
    "a column twice": (["x,y,mood,y", *ROWS], "have 2 columns 'y'", "y"),
    "empty file": ([""], "have no column 'x'", "x"),
    "a word": ([HEADER, *ROWS, "0.1,secret,calm"], "cell in column 'y' that is not a num", "y"),
    "an empty cell": ([HEADER, *ROWS, ",0.1,calm"], "cell in column 'x' that is not a num", "x"),
    "not a number": ([HEADER, *ROWS, "nan,0.1,calm"], "cell in column 'x' that is not a", "x"),
    "infinite": ([HEADER, *ROWS, "0.2,inf,calm"], "cell in column 'y' that is not a", "y"),
    "a short row": ([HEADER, *ROWS, "0.1"], "cell in column 'y' that is not a number", "y"),
    "a long row": ([HEADER, *ROWS, "0.1,0.2,calm,secret"], "more cells than columns", None),
    "another class": ([HEADER, *ROWS, "0.1,0.2,secret"], "a value of 'mood' that", "mood"),
    "too few": ([HEADER, *ROWS[:19]], "are 19 rows; 20 are needed", None),
}


@pytest.mark.parametrize("case", BAD)
def test_read_test_rows_bad_file_refused_without_its_values(tmp_path: Path, case: str):
    lines, words, column = BAD[case]
    with pytest.raises(BadInput, match=words) as error:
        read_test_rows(write(tmp_path, *lines), CONTEXT)
    assert error.value.message.startswith("The test rows test.csv ") and error.value.remedy
    assert str(error.value.file).endswith("test.csv")
    assert error.value.column == column
    assert "secret" not in str(error.value)


def test_read_test_rows_binary_file_refused(tmp_path: Path):
    path = tmp_path / "test.csv"
    path.write_bytes(b"\xff\xfe\x00\x01" * 9)
    with pytest.raises(BadInput, match="cannot be read as CSV in UTF-8"):
        read_test_rows(path, CONTEXT)
