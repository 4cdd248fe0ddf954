"""Derived columns of a release file: what is accepted, and one sentence for what is not."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from flows.config.column_patterns import expand_columns
from flows.config.columns import ColumnSpec, check_columns
from flows.config.release_file import ReleaseFile, load
from ppdm_core.model.errors import BadInput, ErrorList
from tests.flows.config.test_release_file import GOOD, write
from warehouse.columns import Column, Derivation

ROOT = Path(__file__).parents[3]
YEAR = 'made = { role = "feature", derive = "year", from = "notes", low = 1990, high = 2030 }'


def load_with(folder: Path, line: str) -> ReleaseFile:
    return load(write(folder, GOOD.replace("[defaults]", f"{line}\n[defaults]")))


def build(folder: Path, line: str) -> Column:
    return load_with(folder, line).build_columns()[-1]


def read_error(folder: Path, line: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load_with(folder, line)
    assert caught.value.exit_code == 2 and caught.value.file and caught.value.remedy
    return caught.value


def test_build_columns_year_is_a_numeric_feature_of_its_source(tmp_path: Path) -> None:
    column = build(tmp_path, YEAR)
    assert (column.name, column.type, column.low, column.high) == ("made", "numeric", 1990, 2030)
    assert (column.outside, column.missing) == ("clamp", "drop_row")
    assert column.derivation == Derivation("year", ("notes",))


@pytest.mark.parametrize(
    ("line", "derivation"),
    [
        ('derive = "log1p", from = "radius", low = 0, high = 4', Derivation("log1p", ("radius",))),
        (
            'derive = "ratio", from = ["radius", "area"], low = 0, high = 4',
            Derivation("ratio", ("radius", "area")),
        ),
        (
            'derive = "years_since", from = "notes", date = "2026-01-31", low = 0, high = 90',
            Derivation("years_since", ("notes",), date="2026-01-31"),
        ),
        (
            'derive = "years_since", from = "notes", date = 2026-01-31, low = 0, high = 90',
            Derivation("years_since", ("notes",), date="2026-01-31"),
        ),
        (
            'derive = "month", from = "notes", low = 1, high = 12, type = "numeric"',
            Derivation("month", ("notes",)),
        ),
    ],
)
def test_build_columns_each_function_has_its_arguments(
    tmp_path: Path, line: str, derivation: Derivation
) -> None:
    column = build(tmp_path, f'made = {{ role = "feature", {line} }}')
    assert (column.derivation, column.type) == (derivation, "numeric")


@pytest.mark.parametrize(
    ("outside", "categories"),
    [
        ("", ("[0, 18)", "[18, 65)", "[65, 120]")),
        (', outside = "clamp"', ("[0, 18)", "[18, 65)", "[65, 120]")),
        (', outside = "other"', ("[0, 18)", "[18, 65)", "[65, 120]", "other")),
    ],
)
def test_build_columns_bin_categories_follow_from_edges(
    tmp_path: Path, outside: str, categories: tuple[str, ...]
) -> None:
    settings = f'derive = "bin", from = "radius", edges = [0, 18, 65, 120]{outside}'
    column = build(tmp_path, f'made = {{ role = "feature", {settings} }}')
    assert (column.type, column.categories) == ("categorical", categories)


def test_load_derived_columns_survive_json(tmp_path: Path) -> None:
    file = load_with(tmp_path, YEAR)
    again = ReleaseFile.model_validate_json(file.model_dump_json())
    assert again.columns["made"] == file.columns["made"] and again.digest == file.digest
    changed = load_with(tmp_path, YEAR.replace('"year"', '"month"'))
    assert changed.digest != file.digest


BAD: dict[str, tuple[str, str, str]] = {
    "unknown": (
        'derive = "yaer", from = "notes", low = 0, high = 1',
        "has the unknown derivation 'yaer'",
        "Did you mean 'year'?",
    ),
    "sql": (
        'derive = "select 1", from = "notes", low = 0, high = 1',
        "has the unknown derivation 'select 1'",
        "Known: ",
    ),
    "bounds": ('derive = "year", from = "notes"', "lacks 'low' or 'high'", "Declare both"),
    "bound": ('derive = "log1p", from = "radius", low = 0', "lacks 'low' or 'high'", "both"),
    "no source": ('derive = "year", low = 0, high = 1', "is derived and lacks 'from'", "Add"),
    "no date": (
        'derive = "years_since", from = "notes", low = 0, high = 1',
        "is derived and lacks 'date'",
        "Add 'date'.",
    ),
    "no such date": (
        'derive = "years_since", from = "notes", date = "2026-02-30", low = 0, high = 1',
        "must be a date such as",
        "Its meaning: The date",
    ),
    "no edges": ('derive = "bin", from = "radius"', "is derived and lacks 'edges'", "Add"),
    "few edges": ('derive = "bin", from = "radius", edges = [0, 1]', "fewer than 3 edges", "Add"),
    "falling edges": ('derive = "bin", from = "radius", edges = [0, 2, 1]', "ascend", "Sort"),
    "equal edges": ('derive = "bin", from = "radius", edges = [0, 1, 1]', "ascend", "Sort"),
    "categories": (
        'derive = "bin", from = "radius", edges = [0, 1, 2], categories = ["a"]',
        "is derived and declares categories",
        "Remove",
    ),
    "bounds of bins": (
        'derive = "bin", from = "radius", edges = [0, 1, 2], low = 0, high = 2',
        "declares 'low' or 'high'",
        "Remove them.",
    ),
    "type": (
        'derive = "year", from = "notes", type = "categorical", low = 0, high = 1',
        "is categorical, and year gives a numeric one",
        "Remove 'type'.",
    ),
    "foreign key": (
        'derive = "year", from = "notes", edges = [0, 1, 2], low = 0, high = 1',
        "declares 'edges', which year has not",
        "Remove it.",
    ),
    "one of two": (
        'derive = "ratio", from = "radius", low = 0, high = 1',
        "is derived from 1 column, and ratio takes 2",
        'from = ["a", "b"]',
    ),
    "one of two, twice": (
        'derive = "ratio", from = ["area", "area"], low = 0, high = 1',
        "is derived from the same column twice",
        "Name two columns.",
    ),
    "two of one": (
        'derive = "year", from = ["notes", "area"], low = 0, high = 1',
        "is derived from 2 columns, and year takes 1",
        'from = "a"',
    ),
    "identifier": (
        'derive = "log1p", from = "patient_id", low = 0, high = 1',
        "'patient_id', which has the role identifier",
        '"feature" or "exclude"',
    ),
    "identifier in a ratio": (
        'derive = "ratio", from = ["radius", "patient_id"], low = 0, high = 1',
        "'patient_id', which has the role identifier",
        '"feature" or "exclude"',
    ),
    "label": (
        'derive = "log1p", from = "diagnosis", low = 0, high = 1',
        "which has the role label",
        '"feature" or "exclude"',
    ),
    "no column": (
        'derive = "year", from = "nots", low = 0, high = 1',
        "'nots', which is not a declared column",
        "Did you mean 'notes'?",
    ),
    "itself": (
        'derive = "log1p", from = "made", low = 0, high = 1',
        "which is derived itself",
        "Name a source column.",
    ),
    "keys without a function": ('type = "numeric", from = "notes"', "no 'derive'", "Add 'derive'"),
    "misspelled key": (
        'derive = "year", form = "notes", low = 0, high = 1',
        "Unknown key 'form' in column 'made'",
        "Did you mean 'from'?",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_load_bad_derivation_one_sentence(tmp_path: Path, case: str) -> None:
    line, words, remedy = BAD[case]
    error = read_error(tmp_path, f'made = {{ role = "feature", {line} }}')
    assert error.column == "made"
    assert words in error.message and remedy in (error.remedy or "")


@pytest.mark.parametrize("role", ["identifier", "label", "exclude"])
def test_load_derived_column_of_other_role_bad_input(tmp_path: Path, role: str) -> None:
    error = read_error(tmp_path, YEAR.replace('"feature"', f'"{role}"'))
    assert f"is derived and has the role {role}" in error.message


def test_load_record_id_derived_bad_input(tmp_path: Path) -> None:
    text: Any = GOOD.replace('record_id = "patient_id"', 'record_id = "made"')
    with pytest.raises(BadInput, match="must be an identifier"):
        load(write(tmp_path, text.replace("[defaults]", f"{YEAR}\n[defaults]")))


def test_columns_page_example_accepted() -> None:
    page = (ROOT / "docs/columns.md").read_text()
    content = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])["columns"]
    names = [*(name for name in content if "derive" not in content[name] and "*" not in name)]
    expanded = expand_columns(content, [*names, "lab_a"], "patients.csv", ErrorList())
    specs = {name: ColumnSpec.model_validate(spec) for name, spec in expanded.items()}
    check_columns(specs, "patient_id")
    assert specs["lab_a"].missing == "median" and specs["lab_comment"].role == "exclude"
