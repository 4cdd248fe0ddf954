"""`ppdm check FILE`, also with `--expectations OUT.json`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.app import main
from ppdm.cli.check import check_release_file
from ppdm_core.model.errors import BadInput
from tests.support.small_release import Small

ROWS = {"type": "expect_table_row_count_to_be_between", "min_value": 100}


@pytest.fixture
def small(tmp_path: Path) -> Small:
    small = Small(tmp_path, "small", {})
    small.content["expectations"] = [ROWS]
    return small.write()


@pytest.mark.slow
def test_check_expectations_suite_written(small: Small) -> None:
    out = small.folder / "suite.json"
    result = check_release_file(small.file, out)
    suite = json.loads(out.read_text())
    assert f"The suite of {len(suite['expectations'])} expectations is in {out}." in result.text
    assert result.payload["expectations"] == str(out)
    last = suite["expectations"][-1]
    assert (last["type"], last["kwargs"]) == (ROWS["type"], {"min_value": 100.0})
    found = {(each["type"], each["kwargs"].get("column")) for each in suite["expectations"]}
    assert ("expect_column_values_to_not_be_null", "height") in found
    assert ("expect_column_values_to_be_unique", "person") in found
    private = [row[name] for row in small.rows for name in ("person", "notes", "height")]
    assert not any(value in out.read_text() for value in private)


def test_check_expectations_existing_file_left_alone(small: Small) -> None:
    out = small.folder / "suite.json"
    out.write_text("mine")
    with pytest.raises(BadInput, match=r"suite\.json exists already"):
        check_release_file(small.file, out)
    assert out.read_text() == "mine"


def test_check_expectations_folder_missing_reported(small: Small) -> None:
    with pytest.raises(BadInput, match=r"The folder of suite\.json does not exist"):
        check_release_file(small.file, small.folder / "no" / "suite.json")


@pytest.mark.extended
def test_check_expectation_not_met_nothing_written(small: Small) -> None:
    small.content["expectations"] = [{**ROWS, "min_value": 1000}]
    small.write()
    out = small.folder / "suite.json"
    with pytest.raises(
        BadInput, match=r"small\.csv does not meet expect_table_row_count"
    ) as caught:
        check_release_file(small.file, out)
    assert "min_value = 1000" in caught.value.message
    assert "120" not in caught.value.message  # the observed number
    assert not out.exists()


@pytest.mark.extended
def test_check_weaker_promises_named(small: Small) -> None:
    plain = check_release_file(small.file)
    assert "Weaker promise" not in plain.text and plain.payload["weaker_promises"] == []
    small.content["defaults"] = {"missing": "median"}
    small.content["columns"]["mood"] |= {"missing": "drop_row"}
    small.write()
    found = check_release_file(small.file)
    assert "  Weaker promise: Empty cells hold the median of their column" in found.text
    assert "  Weaker promise: Rows are dropped because of their values" in found.text
    assert len(found.payload["weaker_promises"]) == 2


@pytest.mark.parametrize("command", ["check", "release"])
def test_command_file_without_permission_file_and_remedy_named(
    command: str, small: Small, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*given: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "access", lambda *given, **more: False)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(SystemExit) as ended:
        main([command, str(small.file)])
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert "small.toml: The release file cannot be read" in printed
    assert "Check the path and its permissions." in printed
