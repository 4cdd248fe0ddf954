from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.forkserver import Result
from tests.support.small_release import FEATURES, Small, feature
from warehouse.database import SCHEMA_FILES, Store
from warehouse.home import Home

Maker = Callable[..., Small]
CANARY = "qzxcanary"
PROGRESS = re.compile(r" *\d+\.\d s  .*")
LEFT = {"small.toml", "small.csv", ".ppdm"}  # nothing else may appear


def change_header(release: Small, before: str, after: str) -> None:
    first, rest = release.table.read_text().split("\n", 1)
    release.table.write_text(f"{first.replace(before, after)}\n{rest}")


def missing_file(release: Small) -> None:
    release.table.unlink()


def folder(release: Small) -> None:
    release.table.unlink()
    release.table.mkdir()


def no_table(release: Small) -> None:
    release.table.write_text(f"person,mood\n{CANARY},calm\n{CANARY}\n{CANARY},calm,1,2\n")


def binary(release: Small) -> None:
    release.table.write_bytes(b"\x00\x01" * 500)


def empty(release: Small) -> None:
    release.table.write_text("")


def header_only(release: Small) -> None:
    release.table.write_text(release.table.read_text().split("\n", 1)[0] + "\n")


def one_row(release: Small) -> None:
    release.table.write_text("\n".join(release.table.read_text().split("\n")[:2]) + "\n")


def unknown_key(release: Small) -> None:
    release.content["dataset"]["ownr"] = "registry"
    release.write()


def unknown_parameter(release: Small) -> None:
    release.content["sanitizer"]["component"] = 1
    release.write()


def unknown_method(release: Small) -> None:
    release.content["sanitizer"] = {"method": "pca_laplce"}
    release.write()


def unknown_attack(release: Small) -> None:
    release.content["audit"]["required"] = ["known_pair"]
    release.write()


def no_toml(release: Small) -> None:
    release.file.write_text("format = 1\n[dataset\n")


def missing_column(release: Small) -> None:
    release.content["columns"]["iron_level"] = feature()
    release.write()


def extra_column(release: Small) -> None:
    del release.content["columns"]["iron"]
    release.write()


def no_header(release: Small) -> None:
    lines = release.table.read_text().split("\n", 1)[1]
    release.table.write_text(lines.replace("note", CANARY))


def cell(value: str, column: str = "iron", rows: tuple[int, ...] = (6, 9)) -> Any:
    def spoil(release: Small) -> None:
        for row in rows:
            release.rows[row][column] = value
        release.write()

    return spoil


def outside(release: Small) -> None:
    release.content["columns"]["iron"]["outside"] = "reject"
    cell("10.987654321")(release)


def constant(release: Small) -> None:
    release.content["columns"]["iron"] |= {"low": "from_data", "high": "from_data"}
    cell("5.987654321", rows=tuple(range(len(release.rows))))(release)


def duplicate_names(release: Small) -> None:
    change_header(release, "pulse", "iron")


def one_class(release: Small) -> None:
    cell("calm", "mood", tuple(range(len(release.rows))))(release)


def not_utf8(release: Small) -> None:
    release.table.write_bytes(release.table.read_bytes().replace(b"note 6", b"\xff\xfe note"))


def wrong_kind(release: Small) -> None:
    release.content["source"]["kind"] = "parquet"
    release.write()


def not_categorical(release: Small) -> None:
    release.content["columns"]["iron"] = {
        "role": "feature",
        "type": "categorical",
        "categories": ["low", "high"],
    }
    release.write()


# What is spoiled, the column that must be named, and words of the sentence and its remedy.
BAD: dict[str, tuple[Callable[[Small], None], str | None, str]] = {
    "missing file": (missing_file, None, r"small\.csv does not exist.*path"),
    "a folder": (folder, None, r"No file is found for the source small\.csv.*path"),
    "not a table": (no_table, None, r"small\.csv is not a table: see line \d.*header"),
    "binary": (binary, None, r"small\.csv is not a table.*CSV"),
    "empty": (empty, None, r"small\.csv is empty.*Give"),
    "header only": (header_only, None, r"small\.csv has a header but no rows.*at least 2"),
    "one row": (one_row, None, r"small\.csv has only one row.*at least 2"),
    "unknown key": (unknown_key, None, r"small\.toml.*'ownr'.*Did you mean 'owner'"),
    "unknown parameter": (unknown_parameter, None, r"small\.toml.*'component'.*'components'"),
    "unknown method": (unknown_method, None, r"small\.toml.*'pca_laplce'.*'pca_laplace'"),
    "unknown attack": (unknown_attack, None, r"small\.toml.*'known_pair'.*'known_pairs'"),
    "no toml": (no_toml, None, r"small\.toml.*line 2.*Correct"),
    "missing column": (missing_column, "iron_level", r"not in small\.csv.*spelling"),
    "extra column": (extra_column, "iron", r"small\.csv has no role.*exclude"),
    "no header": (no_header, None, r"None of the declared columns is in small\.csv.*header"),
    "text": (cell(CANARY), "iron", r"2 cells that are not numbers.*row 7\. Correct"),
    "empty cell": (cell(""), "iron", r"2 cells that are empty.*row 7\. Fill"),
    "nan": (cell("NaN"), "iron", r"2 cells that are NaN or infinite.*row 7\. Correct"),
    "infinite": (cell("-inf"), "iron", r"2 cells that are NaN or infinite.*row 7\. Correct"),
    "outside": (outside, "iron", r"2 cells that are outside.*row 7\. Correct"),
    "constant": (constant, "iron", r"is constant.*Declare low and high"),
    "duplicate ids": (cell(CANARY, "person"), "person", r"1 repeated value\. Make"),
    "empty id": (cell("", "person"), "person", r"2 cells that are empty.*row 7\. Give every"),
    "duplicate names": (duplicate_names, None, r"Columns \d and \d of small\.csv.*Rename"),
    "one class": (one_class, "mood", r"fewer than 2 classes.*several"),
    "unknown class": (cell(CANARY, "mood"), "mood", r"2 cells.*categories; .*row 7\. Correct"),
    "not utf-8": (not_utf8, None, r"small\.csv is not UTF-8: see line 8.*encoding"),
    "not parquet": (wrong_kind, None, r"small\.csv is not a table.*Parquet.*kind"),
    "categorical": (not_categorical, "iron", r"small\.toml.*takes only numeric.*exclude"),
}
THROUGH_RELEASE = ("not a table", "one class")
# One case of each way of a complaint; the others are slow.
NORMAL = ("missing file", "nan", "duplicate ids", "not utf-8", "categorical")


def check_complaint(result: Result, words: str, column: str | None) -> None:
    assert (result.exit_code, result.stdout) == (2, "")
    lines = [line for line in result.stderr.splitlines() if not PROGRESS.fullmatch(line)]
    first, *others = lines
    assert all(line.startswith("  - ") for line in others), result.stderr
    text = " ".join(lines)
    assert first.startswith("ppdm: ") and re.search(words, text), text
    assert column is None or f"'{column}'" in text
    assert "Traceback" not in result.stderr
    check_no_value(result)


def check_no_value(result: Result) -> None:
    for value in (CANARY, "987654321"):
        assert value not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "what", [pytest.param(each, marks=[pytest.mark.slow] * (each not in NORMAL)) for each in BAD]
)
def test_check_bad_input_reported_nothing_written(what: str, small: Maker) -> None:
    spoil, column, words = BAD[what]
    release = small().write()
    spoil(release)
    check_complaint(release.run("check"), words, column)
    assert {path.name for path in release.folder.iterdir()} <= LEFT
    assert not release.private.exists() and not release.published.exists()


@pytest.mark.extended
@pytest.mark.parametrize("what", THROUGH_RELEASE)
def test_release_bad_input_reported_nothing_left(what: str, small: Maker) -> None:
    spoil, column, words = BAD[what]
    release = small().write()
    spoil(release)
    result = release.run("release", "--json")
    content = json.loads(result.stdout)
    assert (result.exit_code, content["error"]["kind"]) == (2, "bad_input")
    assert content["error"]["column"] == column
    assert Path(content["error"]["file"]).name == "small.csv"
    assert re.search(words, content["error"]["message"] + " " + content["error"]["remedy"])
    check_no_value(result)
    check_nothing_left(release)


def check_nothing_left(release: Small) -> None:
    assert {path.name for path in release.folder.iterdir()} <= LEFT
    assert not release.published.exists()
    assert list((release.private / "work").iterdir()) == []
    assert list((release.private / "tmp").iterdir()) == []
    with Store(Home(release.home)).transaction("tests") as db:
        listing = """
            select table_name from information_schema.tables
            where table_schema in ('raw', 'validated', 'sanitized')
        """
        assert db.execute(listing).fetchall() == []
        assert db.execute("select stage from meta.run").fetchall() in ([("rejected",)], [])


def test_release_source_file_missing_bad_input(small: Maker) -> None:
    release = small().write()
    missing_file(release)
    check_complaint(release.run("release"), BAD["missing file"][2], None)
    assert not release.private.exists()


def test_release_newer_warehouse_version_refused(small: Maker) -> None:
    release = small().write()
    home = Home(release.home)
    home.create()
    newer = len(list(SCHEMA_FILES.glob("*.sql"))) + 1
    with Store(home).transaction("tests") as db:
        db.execute("insert into meta.migration values (?, 'of a newer version')", [newer])
    words = r"was made by another version of ppdm, and this version cannot read it\. Name another"
    check_complaint(release.run("release"), words, None)
    check_complaint(release.ask("status"), words, None)
    assert not release.published.exists()


def test_status_newer_duckdb_format_file_unchanged(small: Maker) -> None:
    release = small().write()
    home = Home(release.home)
    home.create()
    with Store(home).transaction("tests"):
        pass
    write(home.database, 12, 1250)  # behind checksum and magic bytes: the version of the format
    with pytest.raises(duckdb.Error, match="checksum") as complaint:
        duckdb.connect(str(home.database))
    computed = re.search(r"computed checksum (\d+)", str(complaint.value))
    assert computed
    write(home.database, 0, int(computed[1]))
    content = home.database.read_bytes()
    check_complaint(release.ask("status"), "newer version of DuckDB.*Install", None)
    assert home.database.read_bytes() == content


def write(path: Path, place: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(value.to_bytes(8, "little"))


def test_cli_wrong_command_line_bad_input(small: Maker) -> None:
    release = small().write()
    result = release.ask("release", "--jsn", "--json")
    content = json.loads(result.stdout)
    assert (result.exit_code, content["error"]["kind"], result.stderr) == (2, "bad_input", "")
    check_complaint(release.ask("show"), "ID", None)


@pytest.mark.extended
def test_check_unspoiled_table_passes(small: Maker) -> None:
    """The control: what the cases spoil is right to begin with."""
    release = small().write()
    result = release.run("check")
    assert result.exit_code == 0
    assert f"{len(release.rows)} records" in result.stdout
    assert all(name in release.table.read_text() for name in FEATURES)
