from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ppdm_core.model.errors import BadInput, Defect
from tasks.ingest.checks import list_checks
from tasks.ingest.expectations import (
    check_expectations,
    check_profile,
    judge_expectations,
    preload,
)
from warehouse.columns import Column, Source
from warehouse.expectations import Expectation, QuantileRange
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


@pytest.mark.extended
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


@pytest.mark.parametrize("key", ["rows", "rows left", "missing in 'x'", "values in 'x'"])
@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_check_profile_figure_not_a_number_defect(value: Any, key: str) -> None:
    columns = (number("x"),)
    with pytest.raises(Defect, match="no numbers"):
        check_profile({**make_profile(columns), key: value}, columns, record_id=None, file=FILE)


Edit = Callable[[Any], None]


@pytest.fixture
def edit_results(monkeypatch: pytest.MonkeyPatch) -> Callable[[Edit], None]:
    """Return a function that makes Great Expectations return edited results."""
    preload()
    from great_expectations.datasource.fluent.interfaces import Batch

    validate = Batch.validate

    def plant(edit: Edit) -> None:
        def validate_and_edit(self: Any, suite: Any, **options: Any) -> Any:
            result = validate(self, suite, **options)
            edit(result.results)
            return result

        monkeypatch.setattr(Batch, "validate", validate_and_edit)

    return plant


@pytest.mark.parametrize("keep", [0, 3])
def test_check_profile_missing_result_defect(edit_results: Any, keep: int) -> None:
    columns = (number("x"),)

    def forget(results: list[Any]) -> None:
        del results[keep:]

    edit_results(forget)
    with pytest.raises(Defect, match=f"judged {keep} of 6"):
        check_profile(make_profile(columns), columns, record_id=None, file=FILE)


def test_check_profile_result_given_twice_other_missing_defect(edit_results: Any) -> None:
    columns = (number("x"),)

    def repeat(results: list[Any]) -> None:
        results[-1] = results[0]

    edit_results(repeat)
    with pytest.raises(Defect, match="judged 5 of 6"):
        check_profile(make_profile(columns), columns, record_id=None, file=FILE)


RAISED = {"raised_exception": True, "exception_message": "x", "exception_traceback": "x"}
FINE = {"raised_exception": False, "exception_message": None, "exception_traceback": None}


@pytest.mark.parametrize(
    "info",
    [RAISED, {"one metric": RAISED}, {"one metric": FINE, "another": RAISED}, {}],
    ids=["plain", "by metric", "second metric", "empty"],
)
@pytest.mark.parametrize("success", [True, False])
def test_check_profile_exception_in_a_result_defect(
    edit_results: Any, info: dict[str, Any], success: bool
) -> None:
    columns = (number("x"),)

    def raise_in_last(results: list[Any]) -> None:
        results[-1].exception_info, results[-1].success = info, success

    edit_results(raise_in_last)
    with pytest.raises(Defect, match="failed on the profile"):
        check_profile(make_profile(columns), columns, record_id=None, file=FILE)


def test_check_profile_metric_raises_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (number("x"),)
    preload()
    from great_expectations.execution_engine import PandasExecutionEngine

    get_domain = PandasExecutionEngine.get_compute_domain

    def fail_for_one_figure(self: Any, domain_kwargs: Any, *args: Any, **options: Any) -> Any:
        if domain_kwargs.get("column") == "missing in 'x'":
            raise ValueError(CANARY)
        return get_domain(self, domain_kwargs, *args, **options)

    monkeypatch.setattr(PandasExecutionEngine, "get_compute_domain", fail_for_one_figure)
    with pytest.raises(Defect, match="failed on the profile") as caught:
        check_profile(make_profile(columns), columns, record_id=None, file=FILE)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("success", [None, 1, "true"])
def test_check_profile_no_verdict_defect(edit_results: Any, success: Any) -> None:
    columns = (number("x"),)

    def withhold(results: list[Any]) -> None:
        results[0].success = success

    edit_results(withhold)
    with pytest.raises(Defect, match="no verdict"):
        check_profile(make_profile(columns), columns, record_id=None, file=FILE)


def test_check_profile_great_expectations_decides(edit_results: Any) -> None:
    columns = (number("x"),)
    good = make_profile(columns)
    bad = {**good, "missing in 'x'": 1, "first row missing in 'x'": 2}

    def set_all(success: bool) -> Edit:
        def edit(results: list[Any]) -> None:
            for result in results:
                result.success = success

        return edit

    with pytest.raises(BadInput, match="1 cell that is empty, in row 2"):
        check_profile(bad, columns, record_id=None, file=FILE)
    edit_results(set_all(True))
    check_profile(bad, columns, record_id=None, file=FILE)
    edit_results(set_all(False))
    with pytest.raises(BadInput, match="fewer than 2 rows"):
        check_profile(good, columns, record_id=None, file=FILE)


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


PLANTS = (
    ID,
    number("x", outside="reject"),
    number("z", low="from_data", high="from_data", missing="median"),
    category("c"),
    category("y", "label"),
)
PLANT_HEADER = "id,x,z,c,y"
PLANT_LINES = ["1,5,1,a,a", "2,6,2,b,b", "3,7,,a,b"]


def read_profile(folder: Path, expectations: Sequence[Expectation] = ()) -> dict[str, Any]:
    path = folder / "wdbc.csv"
    path.write_text("\n".join([PLANT_HEADER, *PLANT_LINES]) + "\n")
    with duckdb.connect(":memory:") as db:
        SOURCES["csv"].load(db, Source("csv", str(path)), "raw")
        return profile(db, "raw", PLANTS, "id", expectations)


@pytest.mark.extended
def test_check_profile_each_figure_out_of_bounds_refused(tmp_path: Path) -> None:
    good = read_profile(tmp_path)
    check_profile(good, PLANTS, record_id="id", file=FILE)
    checks = list_checks(good, PLANTS, "id", "wdbc.csv")
    assert len({check.key for check in checks}) == len(checks) == 2 + 2 + 5 + 4 + 2 + 3
    for check in checks:
        planted = {**good, check.key: check.high + 1 if check.high == 0 else check.low - 1}
        with pytest.raises(BadInput) as caught:
            check_profile(planted, PLANTS, record_id="id", file=FILE)
        (expected,) = (
            each for each in list_checks(planted, PLANTS, "id", "wdbc.csv") if each.key == check.key
        )
        assert (caught.value.message, caught.value.column) == (expected.message, check.column)
        assert caught.value.remedy == check.remedy


@pytest.mark.extended
def test_profile_expectations_never_a_cell(tmp_path: Path) -> None:
    """A quantile is a value of some record; the profile only counts values outside its range."""
    quantiles = tuple(QuantileRange(level, 90.0, 91.0) for level in (0.0, 0.5, 1.0))
    added = [
        Expectation("expect_column_quantile_values_to_be_between", "x", quantile_ranges=quantiles)
    ]
    found = read_profile(tmp_path, added)
    figures = [value for key, value in found.items() if key not in read_profile(tmp_path)]
    assert figures == [3, -2, 2, -1, 1, 0]
    assert judge_expectations(found, added) == [False]


def test_check_expectations_message_has_limits_and_no_observed_value(tmp_path: Path) -> None:
    added = [
        Expectation("expect_column_values_to_not_be_null", "x"),
        Expectation("expect_column_mean_to_be_between", "x", 1.5, 2.5),
    ]
    passed = judge_expectations(read_profile(tmp_path, added), added)
    assert passed == [True, False]
    with pytest.raises(BadInput) as caught:
        check_expectations(added, passed, file=FILE)
    assert caught.value.message == (
        "Column 'x' of wdbc.csv does not meet expect_column_mean_to_be_between "
        "(min_value = 1.5, max_value = 2.5)."
    )
    assert (caught.value.file, caught.value.column) == (FILE, "x")
    assert "[[expectations]]" in str(caught.value.remedy)


def test_check_expectations_about_the_table_file_named() -> None:
    added = [Expectation("expect_table_row_count_to_be_between", min_value=5.0)]
    with pytest.raises(BadInput, match=r"^wdbc\.csv does not meet expect_table_row_count"):
        check_expectations(added, [False], file="wdbc.csv")


def test_judge_expectations_missing_figure_defect(tmp_path: Path) -> None:
    added = [Expectation("expect_column_mean_to_be_between", "x", 1.5, 2.5)]
    with pytest.raises(Defect, match="lacks 2 of 2"):
        judge_expectations(read_profile(tmp_path), added)


def test_judge_expectations_none_nothing_to_do() -> None:
    assert judge_expectations({"rows": 2}, []) == []


def test_check_profile_bad_cell_in_a_column_with_expectations_named(tmp_path: Path) -> None:
    columns = (number("x"),)
    added = [Expectation("expect_column_mean_to_be_between", "x", 1.0)]
    path = tmp_path / "wdbc.csv"
    for cell, words in (("nan", "NaN or infinite"), ("inf", "NaN or"), (CANARY, "not a number")):
        path.write_text(f"x\n1\n{cell}\n")
        with duckdb.connect(":memory:") as db:
            SOURCES["csv"].load(db, Source("csv", str(path)), "raw")
            found = profile(db, "raw", columns, None, added)
        with pytest.raises(BadInput, match=words):
            check_profile(found, columns, record_id=None, file=FILE)


def test_check_profile_several_bad_columns_all_reported(tmp_path: Path) -> None:
    lines = [f"1,{CANARY},{CANARY},a", "1,,b,b", f"3,7,a,{CANARY}"]
    error = catch_refusal(tmp_path, lines)
    assert [each.column for each in error.list_all()] == ["id", "x", "x", "c", "y"]
    assert "repeated" in error.message and "empty" in error.others[0].message


def test_check_profile_column_without_numbers_reported_once(tmp_path: Path) -> None:
    error = catch_refusal(tmp_path, [f"{i},{CANARY},a,{'ab'[i % 2]}" for i in range(4)])
    assert "has 4 cells that are not numbers" in error.message and not error.others
