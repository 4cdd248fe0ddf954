from __future__ import annotations

import json
from pathlib import Path

import pytest

from ppdm_core.errors import BadInput, Refused
from warehouse.manifest import NAME, file_digest, seal, verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "0001"
    folder.mkdir()
    (folder / "data.parquet").write_bytes(bytes(range(64)))
    (folder / "card.md").write_text("# A card\n")
    files = {path.name: {"sha256": file_digest(path)} for path in folder.iterdir()}
    (folder / NAME).write_bytes(seal({"release_id": "wine-0001", "files": files, "owner": "é"}))
    return folder


def test_an_untouched_release_verifies(folder: Path) -> None:
    assert verify(folder)["release_id"] == "wine-0001"
    assert verify(folder / NAME)["release_id"] == "wine-0001"


def test_the_digest_is_the_last_field(folder: Path) -> None:
    text = (folder / NAME).read_text()
    assert list(json.loads(text))[-1] == "digest"
    assert text.count("\n") == 1


@pytest.mark.parametrize("name", ["data.parquet", "card.md", NAME])
def test_any_changed_byte_is_found(folder: Path, name: str) -> None:
    path = folder / name
    original = path.read_bytes()
    for position in range(len(original)):
        changed = bytearray(original)
        changed[position] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(Refused):
            verify(folder)
    for other in (original + b" ", original[:-1], b""):
        path.write_bytes(other)
        with pytest.raises(Refused):
            verify(folder)
    path.write_bytes(original)
    verify(folder)


def test_missing_and_extra_files_are_found(folder: Path) -> None:
    extra = folder / "more.txt"
    extra.touch()
    with pytest.raises(Refused, match=r"more\.txt is not part"):
        verify(folder)
    extra.unlink()
    (folder / "card.md").unlink()
    with pytest.raises(Refused, match=r"card\.md is missing"):
        verify(folder)


def test_a_folder_without_a_manifest_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no manifest"):
        verify(tmp_path)
