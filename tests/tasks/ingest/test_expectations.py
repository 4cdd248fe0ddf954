from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ppdm_core.model.errors import BadInput, Defect
from tasks.ingest.expectations import check_profile
from warehouse.columns import Column, Source
from warehouse.raw_profile import profile
from warehouse.sources import SOURCES

CANARY = "CANARY7391"
ODD = "o\"d'd. {x} $y ☃"
FILE = "/data/wdbc.csv"


def number(name: str, **settings: Any) -> Column:
    return Column(name, "feature", "numeric", **{"low": 0.0, "high": 10.0, **settings})


def category(name: str, role: Any = "feature", **settings: Any) -> Column:
    return Column(name, role, "categorical", categories=("a", "b"), **settings)


ID = Column("id", "identifier")
COLUMNS = (ID, number("x"), category("c"), category("y", "label"))
GOOD = ["1,5,a,a", "2,6,b,b", "3,7,a,b"]


def judge(
    folder: Path, lines: list[str], columns: tuple[Column, ...] = COLUMNS, header: str = "id,x,c,y"
) -> dict[str, Any]:
    path = folder / "wdbc.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    record_id = "id" if ID in columns else None
    with duckdb.connect(":memory:") as db:
        SOURCES["csv"].load(db, Source("csv", str(path)), "raw")
        found = profile(db, "raw", columns, record_id)
    return check_profile(found, columns, record_id=record_id, file=str(path))


def catch_refusal(folder: Path, *args: Any) -> BadInput:
    with pytest.raises(BadInput) as caught:
        judge(folder, *args)
    assert caught.value.file == str(folder / "wdbc.csv")
    assert caught.value.remedy
    assert CANARY not in f"{caught.value}{caught.value.as_dict()}"
    return caught.value


def test_check_profile_good_table_returns_summary(tmp_path: Path) -> None:
    summary = judge(tmp_path, GOOD)
    assert summary["checks"] == 2 + 2 + 4 + 2 + 3
    assert summary["counts"]["rows"] == 3
    assert summary["counts"]["missing in 'x'"] == 0


BAD_CELLS = {
    "text": (f"3,{CANARY},a,b", "x", "has 1 cell that is not a number, in row 4."),
    "nan": ("3,nan,a,b", "x", "has 1 cell that is NaN or infinite, in row 4."),
    "inf": ("3,-inf,a,b", "x", "NaN or infinite"),
    "overflow": ("3,1e999,a,b", "x", "NaN or infinite"),
    "empty number": ("3,,a,b", "x", "has 1 cell that is empty, in row 4."),
    "empty category": ("3,1,,b", "c", "is empty"),
    "empty label": ("3,1,a,", "y", "is empty"),
    "empty id": (",1,a,b", "id", "has 1 cell that is empty, in row 4."),
    "unknown category": (f"4,1,{CANARY},b", "c", "is not among the declared categories, in row 4"),
    "unknown class": (f"4,1,a,{CANARY}", "y", "is not among the declared categories"),
    "duplicate id": ("3,1,a,b", "id", "has 1 repeated value."),
}


@pytest.mark.parametrize("case", BAD_CELLS)
def test_check_profile_bad_cell_column_named(tmp_path: Path, case: str) -> None:
    line, column, words = BAD_CELLS[case]
    line = line if case in ("duplicate id", "empty id") else f"4{line[line.index(',') :]}"
    error = catch_refusal(tmp_path, [*GOOD, line])
    assert error.column == column
    assert error.message.startswith(f"Column '{column}' of wdbc.csv ")
    assert words in error.message


def test_check_profile_several_bad_cells_counted(tmp_path: Path) -> None:
    lines = [*GOOD, f"4,{CANARY},a,b", "5,1,a,b", f"6,{CANARY},a,b"]
    assert catch_refusal(tmp_path, lines).message == (
        "Column 'x' of wdbc.csv has 2 cells that are not numbers; the first is in row 4."
    )


def test_check_profile_two_bad_columns_first_declared_is_named(tmp_path: Path) -> None:
    lines = [*GOOD, f"4,{CANARY},{CANARY},b"]
    assert catch_refusal(tmp_path, lines).column == "x"
    assert catch_refusal(tmp_path, lines, (ID, COLUMNS[2], COLUMNS[1], COLUMNS[3])).column == "c"


def test_check_profile_undeclared_rules_not_checked(tmp_path: Path) -> None:
    lines = [*GOOD, "4,11,a,b"]
    judge(tmp_path, lines)
    strict = (ID, number("x", outside="reject"), *COLUMNS[2:])
    assert "outside the declared bounds, in row 4" in catch_refusal(tmp_path, lines, strict).message
    gap = [*GOOD, "4,,a,b"]
    for missing in ("median", "drop_row"):
        judge(tmp_path, gap, (ID, number("x", missing=missing), *COLUMNS[2:]))


def test_check_profile_unlisted_categories_dropped_if_declared(tmp_path: Path) -> None:
    lines = [*GOOD, f"4,1,a,{CANARY}"]
    dropping = (*COLUMNS[:3], category("y", "label", outside="drop_row"))
    assert judge(tmp_path, lines, dropping)["counts"]["rows left"] == 3
    assert "declare outside" in str(catch_refusal(tmp_path, lines))
    gap = [*GOOD, "4,1,a,"]
    assert "is empty" in catch_refusal(tmp_path, gap, dropping).message


def test_check_profile_one_bound_from_data_other_enforced(tmp_path: Path) -> None:
    one_side = number("x", low="from_data", high=6.5, outside="reject")
    assert "row 3" in catch_refusal(tmp_path, GOOD, (ID, one_side, *COLUMNS[2:])).message
    both = number("x", low="from_data", high="from_data", outside="reject")
    judge(tmp_path, GOOD, (ID, both, *COLUMNS[2:]))


def test_check_profile_constant_with_bounds_from_data_refused(tmp_path: Path) -> None:
    lines = ["1,5,a,a", "2,5,b,b"]
    judge(tmp_path, lines)
    columns = (ID, number("x", low="from_data", high="from_data"), *COLUMNS[2:])
    error = catch_refusal(tmp_path, lines, columns)
    assert (error.column, "is constant" in error.message) == ("x", True)


def test_check_profile_label_with_one_class_refused(tmp_path: Path) -> None:
    error = catch_refusal(tmp_path, ["1,5,a,a", "2,6,b,a"])
    assert (error.column, "fewer than 2 classes" in error.message) == ("y", True)


def test_check_profile_too_few_rows_after_dropping_refused(tmp_path: Path) -> None:
    columns = (ID, number("x", missing="drop_row"), *COLUMNS[2:])
    error = catch_refusal(tmp_path, ["1,5,a,a", "2,,b,b", "3,,a,b"], columns)
    assert "fewer than 2 rows that are not dropped" in error.message


def test_check_profile_too_few_rows_refused() -> None:
    found = {"rows": 1, "rows left": 1}
    with pytest.raises(BadInput, match="fewer than 2 rows"):
        check_profile(found, (), record_id=None, file=FILE)


def test_check_profile_column_without_values_refused(tmp_path: Path) -> None:
    columns = (ID, number("x", missing="median"), *COLUMNS[2:])
    error = catch_refusal(tmp_path, ["1,,a,a", "2,,b,b"], columns)
    assert (error.column, "has no values" in error.message) == ("x", True)


def test_check_profile_odd_column_name_quoted(tmp_path: Path) -> None:
    header = '"' + ODD.replace('"', '""') + '"'
    columns = (number(ODD),)
    judge(tmp_path, ["1", "2"], columns, header)
    error = catch_refusal(tmp_path, ["1", CANARY], columns, header)
    assert error.column == ODD
    assert f"Column '{ODD}' of wdbc.csv has 1 cell" in error.message


def make_profile(columns: tuple[Column, ...]) -> dict[str, Any]:
    with duckdb.connect(":memory:") as db:
        db.execute("create table raw as select i as __ppdm_row, i as x from range(3) r(i)")
        return dict(profile(db, "raw", columns, None))


def test_check_profile_missing_figure_defect() -> None:
    columns = (number("x"),)
    found = make_profile(columns)
    check_profile(found, columns, record_id=None, file=FILE)
    del found["not finite in 'x'"]
    with pytest.raises(Defect, match="lacks 1 of"):
        check_profile(found, columns, record_id=None, file=FILE)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_check_profile_figure_not_a_number_defect(value: Any) -> None:
    columns = (number("x"),)
    with pytest.raises(Defect, match="no numbers"):
        check_profile({**make_profile(columns), "rows": value}, columns, record_id=None, file=FILE)


def test_check_profile_check_not_evaluated_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (number("x"),)
    check_profile(
        make_profile(columns), columns, record_id=None, file=FILE
    )  # imports Great Expectations
    from great_expectations.datasource.fluent.interfaces import Batch

    whole = Batch.validate

    def forgetful(self: Any, suite: Any) -> Any:
        result = whole(self, suite)
        del result.results[keep:]
        return result

    monkeypatch.setattr(Batch, "validate", forgetful)
    for keep in (0, 3):
        with pytest.raises(Defect, match=f"judged {keep} of"):
            check_profile(make_profile(columns), columns, record_id=None, file=FILE)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("success", False, "disagree"),
        ("exception_info", {"raised_exception": True}, "failed on the profile"),
    ],
)
def test_check_profile_contradicting_verdict_defect(
    monkeypatch: pytest.MonkeyPatch, field: str, value: Any, words: str
) -> None:
    columns = (number("x"),)
    check_profile(
        make_profile(columns), columns, record_id=None, file=FILE
    )  # imports Great Expectations
    from great_expectations.datasource.fluent.interfaces import Batch

    whole = Batch.validate

    def wrong(self: Any, suite: Any) -> Any:
        result = whole(self, suite)
        setattr(result.results[0], field, value)
        return result

    monkeypatch.setattr(Batch, "validate", wrong)
    with pytest.raises(Defect, match=words):
        check_profile(make_profile(columns), columns, record_id=None, file=FILE)


def test_check_profile_any_table_no_output_and_no_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.chdir(scratch)
    judge(tmp_path, GOOD)
    assert capfd.readouterr() == ("", "")
    assert list(scratch.iterdir()) == []
