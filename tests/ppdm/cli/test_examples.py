"""`ppdm examples` writes files that `ppdm check` accepts, and changes none that is there."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from ppdm.cli.check import check_release_file
from ppdm.cli.examples import list_release_files, write_examples
from ppdm.cli.release_files import read_release_file
from ppdm.example_tables import TABLES
from ppdm_core.model.errors import BadInput

RELEASE_FILES = [path.name for path in list_release_files()]
DIGESTS = {  # the first 16 digits; the same in every version of the libraries
    "wdbc.csv": "d7650b66008950e0",
    "census.csv": "9625bbb7e722d432",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "new"
    write_examples(folder)
    return folder


def test_write_examples_new_folder_has_every_file(folder: Path) -> None:
    assert len(RELEASE_FILES) >= 9
    assert sorted(path.name for path in folder.iterdir()) == sorted([*RELEASE_FILES, *TABLES])


@pytest.mark.parametrize("name", TABLES)
def test_example_table_made_again_same_bytes(name: str) -> None:
    assert hashlib.sha256(TABLES[name]()).hexdigest()[:16] == DIGESTS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASE_FILES)
def test_example_written_passes_check(folder: Path, name: str) -> None:
    result = check_release_file(folder / name)
    assert result.exit_code == 0
    assert "are fine" in result.text.splitlines()[0]


def test_write_examples_again_only_missing_written(folder: Path) -> None:
    (folder / "wdbc.csv").unlink()
    (folder / "wdbc_rotation.toml").unlink()
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = write_examples(folder)
    assert set(result.payload["written"]) == {"wdbc.csv", "wdbc_rotation.toml"}
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert "Nothing was missing" in write_examples(folder).text


def test_write_examples_changed_file_refused_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "census.csv").write_text("age\n1\n")
    with pytest.raises(BadInput, match=r"census\.csv is already in .* another folder"):
        write_examples(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["census.csv"]
    (tmp_path / "census.csv").unlink()
    (tmp_path / "wdbc.csv").mkdir()
    with pytest.raises(BadInput, match=r"wdbc\.csv is already"):
        write_examples(tmp_path)


@pytest.mark.parametrize("name", RELEASE_FILES)
def test_example_without_table_error_names_command(tmp_path: Path, name: str) -> None:
    text = next(path for path in list_release_files() if path.name == name).read_text()
    assert tomllib.loads(text)["source"]["path"] in TABLES
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput) as error:
        read_release_file(tmp_path / name)
    assert str(error.value).endswith(f"Write the tables of the examples: ppdm examples {tmp_path}")
