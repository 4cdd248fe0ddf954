"""Columns by pattern: which columns of the source they stand for, and the digest."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from flows.config.column_patterns import expand_columns
from flows.config.release_file import ReleaseFile, load
from ppdm_core.model.errors import BadInput, ErrorList
from tests.flows.config.test_release_file import GOOD, RADIUS

LAB = '"lab_*" = { role = "feature", type = "numeric", low = 0, high = 300 }'
NAMES = ["patient_id", "diagnosis", "lab_b", "area", "lab_a", "stage", "notes"]


def write_files(folder: Path, entries: str, names: list[str] = NAMES, kind: str = "csv") -> Path:
    """Write a source with these columns, and a release file with entries in place of one."""
    path = folder / f"t.{kind}"
    path.unlink(missing_ok=True)
    selected = ", ".join(f"""{i} as "{name}" """ for i, name in enumerate(names))
    rows = f"select {selected} from range(3)"
    if kind == "duckdb":
        with duckdb.connect(str(path)) as db:
            db.execute(f"create table t as {rows}")
    else:
        duckdb.sql(f"copy ({rows}) to '{path}'")
    source = f'kind = "{kind}"\npath = "t.{kind}"' + ('\ntable = "t"' if kind == "duckdb" else "")
    text = GOOD.replace('kind = "csv"\npath = "data/wdbc.csv"', source).replace(RADIUS, entries)
    file = folder / "release.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_load_pattern_stands_for_columns_in_order_of_the_source(tmp_path: Path, kind: str) -> None:
    file = load(write_files(tmp_path, LAB, kind=kind))
    assert list(file.columns) == [
        *("patient_id", "diagnosis", "lab_b", "lab_a", "area", "stage", "notes")
    ]
    assert file.columns["lab_a"] == file.columns["lab_b"]
    assert (file.columns["lab_a"].role, file.columns["lab_a"].high) == ("feature", 300)


def test_load_exact_name_wins_over_pattern(tmp_path: Path) -> None:
    file = load(write_files(tmp_path, f'lab_a = {{ role = "exclude" }}\n{LAB}'))
    assert (file.columns["lab_a"].role, file.columns["lab_b"].role) == ("exclude", "feature")


def test_load_name_with_wildcards_in_the_source_is_a_name(tmp_path: Path) -> None:
    entry = LAB.replace("lab_*", "temp [C]*")
    file = load(write_files(tmp_path, entry, [*NAMES[:2], "temp [C]*", *NAMES[3:4], *NAMES[5:]]))
    assert "temp [C]*" in file.columns


def test_digest_new_column_of_the_source_changes_it(tmp_path: Path) -> None:
    before = load(write_files(tmp_path, LAB)).digest
    assert load(write_files(tmp_path, LAB)).digest == before
    assert load(write_files(tmp_path, LAB, [*NAMES, "lab_c"])).digest != before


def test_digest_pattern_same_as_the_columns_themselves(tmp_path: Path) -> None:
    pattern = load(write_files(tmp_path, LAB))
    written_out = "\n".join(LAB.replace("lab_*", name) for name in ("lab_b", "lab_a"))
    assert load(write_files(tmp_path, written_out)).digest == pattern.digest


def test_load_expanded_file_as_parameter_needs_no_source(tmp_path: Path) -> None:
    path = write_files(tmp_path, LAB)
    file = load(path)
    (tmp_path / "t.csv").unlink()
    again = ReleaseFile.model_validate(json.loads(file.model_dump_json()))
    assert again.digest == file.digest


def read_error(path: Path) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load(path)
    assert caught.value.exit_code == 2 and caught.value.remedy
    assert caught.value.file == str(path)
    return caught.value


def test_load_pattern_without_a_column_bad_input(tmp_path: Path) -> None:
    error = read_error(write_files(tmp_path, f"{LAB}\n{LAB.replace('lab_', 'labs_')}"))
    assert "The pattern 'labs_*' matches no column of t.csv" in error.message


def test_load_pattern_of_declared_columns_alone_bad_input(tmp_path: Path) -> None:
    own = "".join(f'{name} = {{ role = "exclude" }}\n' for name in ("lab_a", "lab_b"))
    error = read_error(write_files(tmp_path, f"{RADIUS}\n{own}{LAB}"))
    assert "matches no column of t.csv that has no entry of its own" in error.message


def test_load_pattern_of_other_case_bad_input(tmp_path: Path) -> None:
    assert "'LAB_*'" in read_error(write_files(tmp_path, LAB.replace("lab_", "LAB_"))).message


def test_load_two_patterns_for_a_column_bad_input(tmp_path: Path) -> None:
    error = read_error(write_files(tmp_path, f"{LAB}\n{LAB.replace('lab_*', '*_a')}"))
    assert "'lab_*' and '*_a' both match column 'lab_a'" in error.message


def test_load_pattern_of_derived_columns_bad_input(tmp_path: Path) -> None:
    entry = '"lab_*" = { role = "feature", derive = "log1p", from = "area", low = 0, high = 1 }'
    assert "needs a name" in read_error(write_files(tmp_path, entry)).message


def test_load_pattern_without_a_source_bad_input(tmp_path: Path) -> None:
    path = write_files(tmp_path, LAB)
    (tmp_path / "t.csv").unlink()
    assert "t.csv does not exist" in read_error(path).message


def test_load_bad_source_section_reported_before_patterns(tmp_path: Path) -> None:
    path = write_files(tmp_path, LAB)
    path.write_text(path.read_text().replace('kind = "csv"', 'kind = "cvs"'))
    assert "'kind' key of [source]" in read_error(path).message


def test_load_pattern_and_other_errors_all_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    file = tmp_path / "t.toml"
    file.write_text(
        '[dataset]\nname = "t"\nrecord_id = "c"\n[source]\nkind = "csv"\npath = "t.csv"\n'
        '[columns]\n"lab_*" = { role = "exclude" }\n"x_*" = { role = "exclude" }\n'
        'a = { role = "feature", type = "numeric", low = 2, high = 1 }\n'
        '[sanitizer]\nmethod = "additive_nois"\n'
    )
    with pytest.raises(BadInput) as caught:
        load(file)
    text = str(caught.value)
    assert all(each in text for each in ("'lab_*'", "'x_*'", "low < high", "'c'", "additive_nois"))


def test_expand_columns_question_marks_and_ranges_match() -> None:
    names = ["q1", "q2", "q10", "r1"]
    found = expand_columns({"q?": {"a": 1}, "q10": {}, "[r-s]*": {"b": 1}}, names, "t", ErrorList())
    assert found == {"q1": {"a": 1}, "q2": {"a": 1}, "q10": {}, "r1": {"b": 1}}
