"""`ppdm init` on generated tables: the role of every kind of column."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from flows.config.release_file import ReleaseFile
from ppdm.cli.result import CommandResult
from tests.support.drafts import NOISE, ROWS, Cell, draft_table, read_roles, write_table

COLUMNS: dict[str, tuple[Cell, str, str]] = {
    "number": (lambda i: NOISE[-i], "feature", "numbers"),
    "padded number": (lambda i: f" {NOISE[-i]} ", "feature", "numbers"),
    "some empty": (lambda i: NOISE[-i] if i % 7 else "", "feature", "some cells are empty"),
    "mostly empty": (lambda i: NOISE[-i] if i % 7 == 0 else "", "exclude", "more than half"),
    "all empty": (lambda i: "", "exclude", "empty"),
    "constant": (lambda i: "5", "exclude", "the same value"),
    "constant spelled twice": (lambda i: ("5", "5.0")[i % 2], "exclude", "the same value"),
    "spelled missing": (lambda i: NOISE[-i] if i % 7 else "?", "feature", "some cells are empty"),
    "not a number": (lambda i: NOISE[-i] if i % 7 else "nan", "feature", "some cells are empty"),
    "infinite": (lambda i: NOISE[-i] if i % 7 else "-inf", "exclude", "NaN or infinity"),
    "separators": (lambda i: f"{1000 + 37 * i:,}", "exclude", "separators"),
    "units": (lambda i: f"{i % 50} kg", "exclude", "units"),
    "huge": (lambda i: f"{i}e300", "exclude", "too large"),
    "tiny": (lambda i: f"{i + 1}e-300", "exclude", "too small"),
    "codes": (lambda i: f"0{1000 + i % 60}", "exclude", "leading zeros"),
    "iso date": (lambda i: f"2021-03-{1 + i % 28}", "exclude", "a date"),
    "german date": (lambda i: f"{1 + i % 28}.3.2021", "exclude", "a date"),
    "us date": (lambda i: f"3/{1 + i % 28}/21", "exclude", "a date"),
    "written date": (lambda i: f"{1 + i % 28} March 2021", "exclude", "a date"),
    "digits date": (lambda i: f"202103{10 + i % 20}", "exclude", "a date"),
    "timestamp": (lambda i: f"2021-03-01T10:{10 + i % 50}:00Z", "exclude", "a date"),
    "clock": (lambda i: f"{i % 24}:30", "exclude", "a date or time"),
    "prose": (lambda i: f"came with pain {i}, left without", "exclude", "free text"),
    "ward": (lambda i: "nsew"[i % 4], "feature", "categories"),
    "flag": (lambda i: "01"[i % 3 // 2], "feature", "categories"),
    "answer": (lambda i: ("true", "false")[i % 2], "feature", "categories"),
    "few codes": (lambda i: f"00{i % 5}", "feature", "categories"),
    "rare words": (lambda i: f"word{i // 3}", "exclude", "group them"),
    "distinct measurements": (lambda i: f"{i * i * 0.37 + 0.01:.3f}", "feature", "numbers"),
    "distinct whole measurements": (lambda i: str(i * i * 37), "feature", "numbers"),
    "serial": (lambda i: str(5000 + i), "identifier", "every value is different"),
    "token": (lambda i: f"t{i * 7919}", "identifier", "every value is different"),
    "patientID": (lambda i: str(i // 2), "identifier", "named like an identifier"),
    "id of visit": (lambda i: f"{i}.5", "identifier", "named like an identifier"),
    "E-Mail": (lambda i: f"p {i}@x.org", "identifier", "named like personal data"),
    "last name": (lambda i: f"von N{i}", "identifier", "named like personal data"),
    "last": (lambda i: NOISE[-i], "feature", "numbers"),
}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseFile, CommandResult, str]:
    cells = {name: cell for name, (cell, _, _) in COLUMNS.items()}
    return draft_table(write_table(tmp_path_factory.mktemp("many"), cells))


@pytest.mark.extended
@pytest.mark.parametrize("name", COLUMNS)
def test_draft_column_of_each_kind_gets_its_role(
    many: tuple[ReleaseFile, CommandResult, str], name: str
) -> None:
    file, result, _ = many
    _, role, why = COLUMNS[name]
    assert read_roles(result)[name][0] == role == file.columns[name].role
    assert why in read_roles(result)[name][1]


def test_draft_features_have_bounds_from_data(many: tuple[ReleaseFile, CommandResult, str]) -> None:
    features = [spec for spec in many[0].columns.values() if spec.type == "numeric"]
    assert {(spec.low, spec.high) for spec in features} == {("from_data", "from_data")}
    assert many[0].columns["some empty"].missing == "median"
    assert many[0].columns["number"].missing is None


def test_draft_table_without_label_is_complete(
    many: tuple[ReleaseFile, CommandResult, str],
) -> None:
    file, result, text = many
    assert (file.dataset.name, file.dataset.owner, file.dataset.audience) == ("t", "", "")
    assert file.sanitizer.method == "pipeline"
    parts = file.sanitizer_parameters()
    assert parts["numeric"]["gamma"] == parts["categorical"]["gamma"] == {"record": 30}
    assert len(file.audit.required) == 5
    assert {limit.set_by for limit in file.limits.values()} == {""}
    assert all(limit.reason for limit in file.limits.values())
    assert "WEAKER PROMISE" in text and "# [schedule]" in text
    assert max(map(len, text.splitlines())) < 100
    for word in ("owner", "audience", "Bounds", "Excluded", "limits", "schedule", "No label"):
        assert sum(word in each for each in result.payload["decisions"]) == 1, word
        assert word in result.text


def test_draft_feature_constant_where_labelled_is_excluded(tmp_path: Path) -> None:
    cells = {"x": lambda i: str(int(i < 5)), "class": lambda i: "" if i < 5 else "ab"[i % 2]}
    assert read_roles(draft_table(write_table(tmp_path, cells))[1])["x"] == (
        "exclude",
        "constant in the rows that are not dropped",
    )


def test_draft_native_types_and_odd_names_are_read(tmp_path: Path) -> None:
    odd = ["new\nline", "do.t", 'quo"te', "it's", "☃ 🩺", "日本", "\u007f", "# x = 1", "a]b"]
    types = {
        "list": "[i, 2]",
        "struct": "{'a': i}",
        "blob": "encode(i::varchar)",
        "flag": "i % 2 = 0",
        "day": "date '2021-01-01' + i::integer",
        "instant": "timestamp '2021-01-01' + to_hours(i::integer)",
        "money": "(i * 7 % 113 / 4)::decimal(9, 2)",
        "big": "(i * i)::hugeint",
        "float_id": "i::double",
        "uid": "uuid()",
        **dict.fromkeys(odd, "random()"),
        "end": "random()",
    }
    names = ", ".join(
        f'{sql} as "{name.replace(chr(34), chr(34) * 2)}"' for name, sql in types.items()
    )
    source = tmp_path / "t.parquet"
    duckdb.sql(f"select {names} from range({ROWS}) r(i)").write_parquet(str(source))
    file, result, _ = draft_table(source)
    derived = [name for name in read_roles(result) if name not in types]
    assert [name for name in read_roles(result) if name in types] == list(types)
    assert derived == ["day_years", "instant_years"]
    excluded = {name for name, spec in file.columns.items() if spec.role == "exclude"}
    assert excluded == {"list", "struct", "blob", "day", "instant"}
    assert file.columns["flag"].categories == ["false", "true"]
    assert file.dataset.record_id == "uid"
    assert all(file.columns[name].role == "feature" for name in ["money", "big", *odd])
    assert file.columns["float_id"].role == "identifier"
    assert "new line" in result.text and "and 7 more" in result.text


def test_draft_rare_categories_collected_as_other(tmp_path: Path) -> None:
    cells = {
        "x": lambda i: str(i * 37 % 101),
        "c": lambda i: "" if i < 3 else "rare" if i < 9 else "ab"[i % 2],
        "class": lambda i: "xy"[i % 2],
    }
    file, _, text = draft_table(write_table(tmp_path, cells))
    spec = file.columns["c"]
    assert (spec.categories, spec.outside, spec.missing) == (["a", "b"], "other", "keep")
    assert "rare" not in text
