from __future__ import annotations

from pathlib import Path

import pytest

from flows.config.context import build_context
from flows.config.release_file import load
from ppdm_core.model.errors import BadInput
from tests.flows.config.test_release_file import GOOD
from warehouse.expectations import EXPECTATIONS, Expectation, QuantileRange

MEAN = 'type = "expect_column_mean_to_be_between"\ncolumn = "radius"\n'
QUANTILES = 'type = "expect_column_quantile_values_to_be_between"\ncolumn = "radius"\n'
IN_SET = 'type = "expect_column_values_to_be_in_set"\n'
FIRST = "entry 1 of [[expectations]]"


def write(folder: Path, *entries: str) -> Path:
    path = folder / "release.toml"
    path.write_text("\n[[expectations]]\n".join([GOOD, *entries]))
    return path


def test_expectations_every_argument_reaches_the_context(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"{MEAN}min_value = 1\nmax_value = 2.5",
        f"{QUANTILES}quantile_ranges = {{ quantiles = [0.5], value_ranges = [[1, 2]] }}",
        f'{IN_SET}column = "notes"\nvalue_set = ["a"]\nmostly = 0.5',
        f'{IN_SET}column = "radius"\nvalue_set = [1, 2.5]',
        'type = "expect_table_row_count_to_be_between"\nmin_value = 10',
    )
    assert build_context(load(path)).expectations == (
        Expectation("expect_column_mean_to_be_between", "radius", 1.0, 2.5),
        Expectation(
            "expect_column_quantile_values_to_be_between",
            "radius",
            quantile_ranges=(QuantileRange(0.5, 1.0, 2.0),),
        ),
        Expectation("expect_column_values_to_be_in_set", "notes", value_set=("a",), mostly=0.5),
        Expectation("expect_column_values_to_be_in_set", "radius", value_set=(1.0, 2.5)),
        Expectation("expect_table_row_count_to_be_between", min_value=10.0),
    )


def test_expectations_added_other_digest(tmp_path: Path) -> None:
    digests = {
        load(write(tmp_path, *entries)).digest
        for entries in ((), (f"{MEAN}min_value = 1",), (f"{MEAN}min_value = 2",))
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("entry", "message", "remedy"),
    [
        (
            'type = "expect_column_stdev_to_be_between"',
            "Unknown expectation 'expect_column_stdev_to_be_between' in [[expectations]].",
            "Did you mean 'expect_column_mean_to_be_between'?",
        ),
        ('column = "radius"', f"The 'type' key of {FIRST} is missing.", "Add 'type'."),
        ("type = 3", f"The 'type' key of {FIRST} must be", "Its meaning"),
        (f"{MEAN}max_valu = 3", f"Unknown key 'max_valu' in {FIRST}.", "'max_value'"),
        (f"{MEAN}", "'min_value' and 'max_value' keys", "Add at least one"),
        (f"{MEAN}min_value = 3\nmax_value = 2", "larger than 'max_value'", "Correct one"),
        (f"{MEAN}min_value = inf", f"'min_value' key of {FIRST} must be a finite", "least"),
        (f'{MEAN}min_value = "1"', f"'min_value' key of {FIRST} must be a valid number", "least"),
        (f"{MEAN}min_value = 1\nmostly = 1", "'mostly' key", "Its arguments: column, min_value"),
        ('type = "expect_column_values_to_be_unique"', "'column' key", "Add 'column'."),
        (
            'type = "expect_column_values_to_be_unique"\ncolumn = "radios"',
            "names 'radios', which is not a declared column",
            "Did you mean 'radius'?",
        ),
        (
            'type = "expect_column_mean_to_be_between"\ncolumn = "stage"\nmin_value = 1',
            "names 'stage', which is not a numeric feature",
            'type = "numeric"',
        ),
        (
            'type = "expect_table_row_count_to_be_between"\ncolumn = "stage"\nmin_value = 1',
            "'column' key",
            "Its arguments: min_value, max_value.",
        ),
        (
            'type = "expect_column_values_to_not_be_null"\ncolumn = "stage"\nmostly = 1.5',
            f"The 'mostly' key of {FIRST} must be less than or equal to 1. Got 1.5.",
            "Share of the cells",
        ),
        (f'{IN_SET}column = "stage"', "'value_set' key", "Add 'value_set'."),
        (f'{IN_SET}column = "stage"\nvalue_set = []', "must list texts, or numbers", "numbers"),
        (f'{IN_SET}column = "stage"\nvalue_set = ["i", 1]', "must list texts, or", "numbers"),
        (f'{IN_SET}column = "stage"\nvalue_set = [true]', "must list texts, or", "numbers"),
        (f'{IN_SET}column = "stage"\nvalue_set = [1]', "does not fit column 'stage'", "texts"),
        (f'{IN_SET}column = "radius"\nvalue_set = ["1"]', "does not fit column", "List numbers"),
        (f"{QUANTILES}", "'quantile_ranges' key", "Add 'quantile_ranges'."),
        (
            f"{QUANTILES}quantile_ranges = {{ quantiles = [0.5], value_ranges = [] }}",
            "has 1 quantiles and 0 value_ranges",
            "one range for each",
        ),
        (
            f"{QUANTILES}quantile_ranges = {{ quantiles = [0.5], value_ranges = [[2, 1]] }}",
            "ends below its start",
            "[low, high]",
        ),
        (
            f"{QUANTILES}quantile_ranges = {{ quantiles = [50], value_ranges = [[1, 2]] }}",
            f"The 'quantile_ranges' key of {FIRST} must be less than or equal to 1. Got 50.",
            "Quantiles",
        ),
        (
            f"{QUANTILES}quantile_ranges = {{ quantiles = [0.5], value_ranges = [[1]] }}",
            "at least 2 items",
            "Quantiles",
        ),
    ],
)
def test_expectations_mistake_named_with_remedy(
    tmp_path: Path, entry: str, message: str, remedy: str
) -> None:
    path = write(tmp_path, entry)
    with pytest.raises(BadInput) as caught:
        load(path)
    assert caught.value.file == str(path)
    assert message in caught.value.message
    assert remedy in str(caught.value.remedy)


def test_expectations_second_entry_named(tmp_path: Path) -> None:
    path = write(tmp_path, f"{MEAN}min_value = 1", f"{MEAN}min_value = 1\nmostly = 1")
    with pytest.raises(BadInput, match=r"entry 2 of \[\[expectations\]\]"):
        load(path)


def test_expectations_page_lists_every_type_with_its_arguments() -> None:
    page = (Path(__file__).parents[3] / "docs" / "expectations.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `expect_")]
    listed = {name.strip(" `"): arguments.strip() for name, arguments in rows}
    assert listed == {
        name: ", ".join(f"`{argument}`" for argument in kind.arguments)
        for name, kind in EXPECTATIONS.items()
    }
