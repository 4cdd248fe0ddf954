"""`ppdm init` on tables with dates: years are derived from them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ppdm.cli.release_files import read_release_file
from tests.support.drafts import ROWS, Cell, draft_table, read_roles, write_table
from warehouse.clock import now


def make_date(i: int) -> str:
    return f"{1950 + i % 60}-0{1 + i % 9}-1{i % 10}"


def test_draft_dates_released_as_years_since(tmp_path: Path) -> None:
    cells: dict[str, Cell] = {
        "born": make_date,
        "seen": lambda i: f"{make_date(i)}T10:00:00Z" if i % 5 else "",
        "rare": lambda i: make_date(i) if i % 5 == 0 else "",
        "german": lambda i: f"1{i % 9}.3.{1950 + i % 60}",
    }
    file, result, text = draft_table(write_table(tmp_path, cells))
    roles = read_roles(result)
    assert list(roles) == ["plain", "born", "born_years", "seen", "seen_years", "rare", "german"]
    assert {roles[name][0] for name in cells} == {"exclude"}
    assert roles["born_years"] == ("feature", "years from the date in 'born'")
    spec = file.columns["born_years"]
    assert (spec.derive, spec.list_sources()) == ("years_since", ("born",))
    assert spec.date == f"{now().year}-01-01" or now().month == 1
    assert (spec.low, spec.high, spec.missing) == ("from_data", "from_data", None)
    assert file.columns["seen_years"].missing == "median"
    assert "not written as YYYY-MM-DD" in roles["german"][1]
    assert str(1950) not in text


def test_draft_dates_name_taken_gets_a_number(tmp_path: Path) -> None:
    cells: dict[str, Cell] = {"born": make_date, "Born_Years": lambda i: str(i * 37 % 101)}
    file, _, _ = draft_table(write_table(tmp_path, cells))
    assert file.columns["born_years_2"].derive == "years_since"


def test_draft_same_date_everywhere_not_derived(tmp_path: Path) -> None:
    _, result, _ = draft_table(write_table(tmp_path, {"day": lambda i: "2021-03-04"}))
    assert read_roles(result).keys() == {"plain", "day"}


def test_draft_table_of_dates_alone_has_features(tmp_path: Path) -> None:
    source = tmp_path / "t.parquet"
    duckdb.sql(
        f"select date '1990-01-01' + (i * 37 % 5000)::integer as a, "
        f"timestamptz '1990-01-01' + to_days((i * 53 % 5000)::integer) as b from range({ROWS}) r(i)"
    ).write_parquet(str(source))
    file, _, _ = draft_table(source)
    assert [name for name, spec in file.columns.items() if spec.derive] == ["a_years", "b_years"]


@pytest.mark.parametrize("name", ['x"; drop table t; --', "it's", "a.b"])
def test_draft_dates_hostile_names_are_read_back(tmp_path: Path, name: str) -> None:
    file, _, _ = draft_table(write_table(tmp_path, {name: make_date}))
    assert file.columns[f"{name}_years"].list_sources() == (name,)
    _, context = read_release_file(tmp_path / "draft.toml")
    assert context.columns[-1].name == name
