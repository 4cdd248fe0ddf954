"""The suite of a table's own columns, run by Great Expectations on the table itself."""

from __future__ import annotations

import io
import json
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from ppdm_core.model.errors import BadInput
from tasks.ingest.expectations import (
    check_expectations,
    check_profile,
    format_suite,
    judge_expectations,
    open_batches,
    preload,
)
from tasks.ingest.table_suite import list_table_expectations
from warehouse.columns import Column, Source
from warehouse.expectations import Expectation, QuantileRange, is_numeric_feature
from warehouse.raw_profile import check_columns, profile
from warehouse.sources import SOURCES
from warehouse.sql import column_types

COLUMNS = (
    Column("id", "identifier"),
    Column("x", "feature", "numeric", low=0.0, high=10.0, outside="reject"),
    Column("c", "feature", "categorical", categories=("a", "b")),
    Column("y", "label", "categorical", categories=("0", "1")),
    Column("notes", "exclude"),
)
HEADER = "id,x,c,y,notes"
GOOD = ["1,5,a,0,p", "2,6,b,1,q", "3,7,a,1,", "4,8.5,b,0,p"]


def change(name: str, **settings: Any) -> tuple[Column, ...]:
    """Return the columns with other settings of one of them."""
    return tuple(
        Column(**{**vars(column), **settings}) if column.name == name else column
        for column in COLUMNS
    )


def load(db: duckdb.DuckDBPyConnection, path: Path, text: str) -> None:
    path.write_text(text)
    SOURCES["csv"].load(db, Source("csv", str(path)), "raw")


def find_our_error(
    folder: Path, text: str, columns: tuple[Column, ...], added: Sequence[Expectation]
) -> BadInput | None:
    """Return the error of the profile checks, or None if the table passes."""
    with duckdb.connect(":memory:") as db:
        try:
            load(db, folder / "t.csv", text)
            check_columns(list(column_types(db, "raw")), columns, "t.csv")
            counts = profile(db, "raw", columns, "id", added)
            check_profile(counts, columns, record_id="id", file="t.csv")
            check_expectations(added, judge_expectations(counts, added), file="t.csv")
        except BadInput as error:
            return error
    return None


def validate(
    text: str, columns: tuple[Column, ...], entries: Sequence[dict[str, Any]]
) -> Sequence[Any]:
    """Return the results of Great Expectations for a suite that was written and read again."""
    preload()
    import great_expectations as gx

    suite = gx.ExpectationSuite(**json.loads(format_suite("t", entries)))
    as_text = {column.name: str for column in columns if not is_numeric_feature(column)}
    frame = pd.read_csv(io.StringIO(text), dtype=as_text, keep_default_na=False, na_values=[""])
    batch = open_batches().get_batch(batch_parameters={"dataframe": frame})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, on cells that are no numbers
        results = batch.validate(suite).results
    assert len(results) == len(suite.expectations)
    return results  # type: ignore[no-any-return]


def run_suite(
    text: str, columns: tuple[Column, ...], added: Sequence[Expectation]
) -> dict[tuple[str, str | None], bool]:
    """Return what Great Expectations finds in the table, by type and column."""
    found: dict[tuple[str, str | None], bool] = {}
    for result in validate(text, columns, list_table_expectations(columns, "id", added)):
        key = (result.expectation_config.type, result.expectation_config.kwargs.get("column"))
        found[key] = found.get(key, True) and bool(result.success)
    return found


def compare(
    folder: Path,
    lines: Sequence[str],
    columns: tuple[Column, ...] = COLUMNS,
    added: Sequence[Expectation] = (),
    header: str = HEADER,
) -> tuple[BadInput | None, list[tuple[str, str | None]]]:
    """Return our error and the failed expectations; both verdicts must be the same."""
    text = "\n".join([header, *lines]) + "\n"
    error = find_our_error(folder, text, columns, added)
    failed = [key for key, passed in run_suite(text, columns, added).items() if not passed]
    assert (error is None) == (failed == []), (error, failed)
    return error, failed


def test_suite_good_table_same_verdict(tmp_path: Path) -> None:
    assert compare(tmp_path, GOOD) == (None, [])


BAD_ROWS = {
    "empty number": ("5,,a,0,", "expect_column_values_to_not_be_null", "x"),
    "empty category": ("5,1,,0,", "expect_column_values_to_not_be_null", "c"),
    "empty label": ("5,1,a,,", "expect_column_values_to_not_be_null", "y"),
    "empty id": (",1,a,0,", "expect_column_values_to_not_be_null", "id"),
    "repeated id": ("1,1,a,0,", "expect_column_values_to_be_unique", "id"),
    "text": ("5,five,a,0,", "expect_column_values_to_be_in_type_list", "x"),
    "infinite": ("5,inf,a,0,", "expect_column_values_to_be_between", "x"),
    "below": ("5,-0.5,a,0,", "expect_column_values_to_be_between", "x"),
    "above": ("5,10.5,a,0,", "expect_column_values_to_be_between", "x"),
    "unknown category": ("5,1,z,0,", "expect_column_values_to_be_in_set", "c"),
    "unknown class": ("5,1,a,2,", "expect_column_values_to_be_in_set", "y"),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", BAD_ROWS)
def test_suite_bad_row_same_verdict(tmp_path: Path, case: str) -> None:
    line, type_name, column = BAD_ROWS[case]
    error, failed = compare(tmp_path, [*GOOD, line])
    assert error is not None
    assert error.column == column
    assert (type_name, column) in failed


def test_suite_infinite_without_strict_bounds_same_verdict(tmp_path: Path) -> None:
    columns = change("x", outside="clamp")
    assert compare(tmp_path, [*GOOD, "5,11,a,0,"], columns) == (None, [])
    error, _ = compare(tmp_path, [*GOOD, "5,-inf,a,0,"], columns)
    assert error is not None
    assert "NaN or infinite" in error.message


TABLES = {
    "one row": (GOOD[:1], COLUMNS, False),
    "one class": (["1,5,a,0,", "2,6,b,0,"], COLUMNS, False),
    "dropped gaps": ([*GOOD, "5,,a,0,"], change("x", missing="drop_row"), True),
    "one row left": (["1,5,a,0,", "2,,b,1,", "3,,b,1,"], change("x", missing="drop_row"), False),
    "one class left": (
        ["1,5,a,0,", "2,6,b,0,", "3,,b,1,"],
        change("x", missing="drop_row"),
        False,
    ),
    "no values": (["1,,a,0,", "2,,b,1,"], change("x", missing="median"), False),
    "one value": (["1,4,a,0,", "2,,b,1,"], change("x", missing="median"), True),
    "dropped categories": ([*GOOD, "5,1,z,0,"], change("c", outside="drop_row"), True),
    "all categories dropped": (
        ["1,5,z,0,", "2,6,z,1,"],
        change("c", outside="drop_row"),
        False,
    ),
    "other categories": ([*GOOD, "5,1,z,0,"], change("c", outside="other"), True),
    "kept gaps": (
        ["1,5,,0,", "2,6,,1,", "3,6,z,1,"],
        change("c", outside="drop_row", missing="keep"),
        True,
    ),
    "kept gaps, one row left": (
        ["1,5,,0,", "2,6,z,1,", "3,6,z,1,"],
        change("c", outside="drop_row", missing="keep"),
        False,
    ),
    "constant": (["1,5,a,0,", "2,5,b,1,"], change("x", low="from_data", high="from_data"), False),
    "varying": (["1,5,a,0,", "2,6,b,1,"], change("x", low="from_data", high="from_data"), True),
    "low from data": (["1,5,a,0,", "2,5,b,1,"], change("x", low="from_data"), True),
    "low from data at high": (["1,10,a,0,", "2,10,b,1,"], change("x", low="from_data"), False),
    "high from data": (["1,5,a,0,", "2,5,b,1,"], change("x", high="from_data"), True),
    "high from data at low": (["1,0,a,0,", "2,0,b,1,"], change("x", high="from_data"), False),
}


@pytest.mark.parametrize("case", TABLES)
def test_suite_rules_of_columns_same_verdict(tmp_path: Path, case: str) -> None:
    lines, columns, passes = TABLES[case]
    error, _ = compare(tmp_path, lines, columns)
    assert (error is None) == passes


def test_suite_other_columns_same_verdict(tmp_path: Path) -> None:
    error, failed = compare(tmp_path, [f"{line},1" for line in GOOD], header=f"{HEADER},extra")
    assert error is not None
    assert error.column == "extra"
    assert ("expect_table_columns_to_match_set", None) in failed


def expect(name: str, column: str | None = None, **arguments: Any) -> Expectation:
    return Expectation(name, column, **arguments)


def expect_quantile(quantile: float, low: float, high: float) -> Expectation:
    ranges = (QuantileRange(quantile, low, high),)
    return expect("expect_column_quantile_values_to_be_between", "x", quantile_ranges=ranges)


DISTINCT = "expect_column_unique_value_count_to_be_between"
MEAN = "expect_column_mean_to_be_between"  # of x: 6.625
ADDED = {  # the values of x are 5, 6, 7 and 8.5; one of the four notes is empty, two are 'p'
    "not null": (expect("expect_column_values_to_not_be_null", "notes"), False),
    "mostly": (expect("expect_column_values_to_not_be_null", "notes", mostly=0.75), True),
    "mostly more": (expect("expect_column_values_to_not_be_null", "notes", mostly=0.76), False),
    "distinct": (expect(DISTINCT, "notes", min_value=2, max_value=2), True),
    "distinct, more": (expect(DISTINCT, "notes", min_value=3), False),
    "distinct, fewer": (expect(DISTINCT, "x", max_value=3), False),
    "between": (expect("expect_column_values_to_be_between", "x", min_value=5), True),
    "between, less": (expect("expect_column_values_to_be_between", "x", max_value=8), False),
    "between, mostly": (
        expect("expect_column_values_to_be_between", "x", max_value=8, mostly=0.75),
        True,
    ),
    "set": (expect("expect_column_values_to_be_in_set", "notes", value_set=("p", "q")), True),
    "set of fewer": (expect("expect_column_values_to_be_in_set", "notes", value_set=("p",)), False),
    "set, mostly": (
        expect("expect_column_values_to_be_in_set", "notes", value_set=("p",), mostly=0.6),
        True,
    ),
    "set of numbers": (
        expect("expect_column_values_to_be_in_set", "x", value_set=(5.0, 6.0, 7.0, 8.5)),
        True,
    ),
    "unique": (expect("expect_column_values_to_be_unique", "x"), True),
    "not unique": (expect("expect_column_values_to_be_unique", "notes"), False),
    "rows": (expect("expect_table_row_count_to_be_between", min_value=4, max_value=4), True),
    "more rows": (expect("expect_table_row_count_to_be_between", min_value=5), False),
    "mean": (expect(MEAN, "x", min_value=6.6, max_value=6.65), True),
    "smaller mean": (expect(MEAN, "x", max_value=6.6), False),
    "larger mean": (expect(MEAN, "x", min_value=6.65), False),
    "median": (expect_quantile(0.5, 7, 7), True),  # the nearest rank, half to even
    "smaller median": (expect_quantile(0.5, 0, 6.9), False),
    "larger median": (expect_quantile(0.5, 7.1, 9), False),
    "median within tolerance": (expect_quantile(0.5, 7.0006, 9), True),
    "smallest": (expect_quantile(0, 5, 5), True),
    "largest": (expect_quantile(1, 8.5, 8.5), True),
    "largest is less": (expect_quantile(1, 0, 8.4), False),
    "same as a built-in one": (expect("expect_column_values_to_not_be_null", "x"), True),
}


# The suite has all quantiles of a column in one expectation.
QUANTILES = tuple(name for name, (each, _) in ADDED.items() if each.quantile_ranges)
ONE_BY_ONE = ("mostly more", "more rows", "same as a built-in one", *QUANTILES)


@pytest.mark.extended
@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_suite_added_expectation_same_verdict(tmp_path: Path, case: str) -> None:
    expectation, passes = ADDED[case]
    error, failed = compare(tmp_path, GOOD, added=[expectation])
    assert (error is None) == passes
    if error is not None:
        assert failed == [(expectation.type, expectation.column)]
        assert expectation.type in error.message


def test_added_expectations_all_at_once_same_verdicts(tmp_path: Path) -> None:
    text = "\n".join([HEADER, *GOOD]) + "\n"
    cases = [case for name, case in ADDED.items() if name not in ONE_BY_ONE]
    added = [expectation for expectation, _ in cases]
    entries = list_table_expectations(COLUMNS, "id", added)[-len(added) :]
    found = {
        make_key(each.expectation_config.type, each.expectation_config.kwargs): bool(each.success)
        for each in validate(text, COLUMNS, entries)
    }
    theirs = [found[make_key(each["type"], each["kwargs"])] for each in entries]
    with duckdb.connect(":memory:") as db:
        load(db, tmp_path / "t.csv", text)
        ours = judge_expectations(profile(db, "raw", COLUMNS, "id", added), added)
    expected = [passes for _, passes in cases]
    assert ours == theirs == expected and True in ours and False in ours
    for expectation in (each for each, passes in cases if not passes):
        with pytest.raises(BadInput, match=expectation.type):
            check_expectations([expectation], [False], file="t.csv")


@pytest.mark.parametrize(
    ("pair", "passes"),
    [
        (("median", "largest"), True),
        (("smallest", "larger median"), False),
        (("largest is less", "median"), False),
        (("median", "smaller median"), False),
    ],
)
def test_suite_two_quantile_expectations_of_a_column_same_verdict(
    tmp_path: Path, pair: tuple[str, str], passes: bool
) -> None:
    error, _ = compare(tmp_path, GOOD, added=[ADDED[name][0] for name in pair])
    assert (error is None) == passes


def make_key(kind: str, arguments: dict[str, Any]) -> str:
    """Return an expectation as text, with all numbers written alike."""
    given = {name: value for name, value in arguments.items() if name != "batch_id"}
    return json.dumps([kind, json.loads(json.dumps(given), parse_int=float)], sort_keys=True)


def make_random_case(
    rng: random.Random,
) -> tuple[list[str], tuple[Column, ...], list[Expectation]]:
    """Return a table that is likely to break some rule, and rules for it."""
    choose = rng.choice
    columns = (
        COLUMNS[0],
        Column(
            **{
                **vars(COLUMNS[1]),
                "low": choose((0.0, "from_data")),
                "high": choose((10.0, "from_data")),
                "outside": choose(("clamp", "reject")),
                "missing": choose(("reject", "drop_row", "median")),
            }
        ),
        Column(
            **{
                **vars(COLUMNS[2]),
                "outside": choose(("reject", "drop_row")),
                "missing": choose(("reject", "drop_row", "keep")),
            }
        ),
        Column(
            **{
                **vars(COLUMNS[3]),
                "outside": choose(("reject", "drop_row")),
                "missing": choose(("reject", "drop_row")),
            }
        ),
        COLUMNS[4],
    )
    odd = rng.random() < 0.5  # half of the tables have gaps and values that no rule allows
    numbers = ["0", "3", "5.25", "10", *(["", "11"] if odd else [])]
    categories = ["a", "b", *(["", "z"] if odd else [])]
    classes = ["0", "1", *(["", "2"] if odd else [])]
    n = rng.randint(1, 6)
    lines = [
        f"{i},{choose(numbers)},{choose(categories)},{choose(classes)},{choose('pq')}"
        for i in range(n)
    ]
    low = choose((0.0, 3.0, 4.0))
    added = [
        expect(MEAN, "x", min_value=low),
        expect_quantile(choose((0.1, 0.25, 0.5, 0.75)), low, 10.0),
        expect(DISTINCT, "notes", min_value=1, max_value=choose((1, 2))),
        expect("expect_column_values_to_be_between", "x", max_value=9.0, mostly=choose((0.2, 0.5))),
    ]
    return lines, columns, rng.sample(added, rng.randint(0, 2))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("seed", "count"),
    [(3, 6), *(pytest.param(seed, 15, marks=pytest.mark.slow) for seed in range(3))],
)
def test_suite_random_tables_same_verdict(tmp_path: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    errors = [compare(tmp_path, *make_random_case(rng))[0] for _ in range(count)]
    assert None in errors and any(errors)  # both verdicts occur


def test_suite_odd_names_same_verdict(tmp_path: Path) -> None:
    columns = (
        Column("id", "identifier"),
        Column("o'd d. {x} $y ☃", "feature", "numeric", 0.0, 9.0),
    )
    header = "id,o'd d. {x} $y ☃"
    assert compare(tmp_path, ["1,2", "2,3"], columns, header=header) == (None, [])
    error, _ = compare(tmp_path, ["1,2", "2,"], columns, header=header)
    assert error is not None


def test_suite_too_many_rules_that_drop_rows_refused() -> None:
    columns = [
        Column(f"x{i}", "feature", "numeric", 0.0, 1.0, missing="drop_row") for i in range(101)
    ]
    assert list_table_expectations(columns[:100], None, ())
    with pytest.raises(BadInput, match="too many for one expectation") as caught:
        list_table_expectations(columns, None, ())
    assert "without --expectations" in str(caught.value.remedy)
