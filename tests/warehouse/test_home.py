from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from warehouse.home import Home


def test_create_private_folder_mode_for_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    assert home.private.stat().st_mode & 0o777 == 0o700


def test_create_link_in_place_of_private_bad_input(tmp_path: Path) -> None:
    home, other = Home(tmp_path / "home"), tmp_path / "other"
    for folder in (home.root, other):
        folder.mkdir()
    home.private.symlink_to(other)
    with pytest.raises(BadInput, match=r"'private' of the home .* is a link"):
        home.create()
    assert list(other.iterdir()) == []


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


def test_clear_work_parts_in_two_folders_both_removed(home: Home, tmp_path: Path) -> None:
    """A run that failed used another folder than the one that continues it."""
    folders = [home.make_work("wine-0001", each) for each in ("", *map(str, list_disks(tmp_path)))]
    assert home.make_work("wine-0001", str(tmp_path / "a")) == folders[1]
    other = home.make_work("wine-0002", str(tmp_path / "a"))
    for folder in (*folders, other):
        (folder / "part.parquet").touch()
    home.clear_work("wine-0001")
    assert [folder.exists() for folder in folders] == [False] * 3
    assert (other / "part.parquet").exists()
    home.clear_work("wine-0002")
    assert list((home.private / "work").iterdir()) == []


def list_disks(folder: Path) -> list[Path]:
    """Return two folders that are made if need be."""
    disks = [folder / "a", folder / "b"]
    for disk in disks:
        disk.mkdir(exist_ok=True)
    return disks


def test_clear_work_disk_not_mounted_removed_later(home: Home, tmp_path: Path) -> None:
    disk = list_disks(tmp_path)[0]
    folder = home.make_work("wine-0001", str(disk))
    disk.rename(tmp_path / "unmounted")
    home.clear_work("wine-0001")
    (tmp_path / "unmounted").rename(disk)
    assert folder.exists()
    assert home.list_work() == {"wine": {"wine-0001"}}
    home.clear_work("wine-0001")
    assert not folder.exists()
    assert home.list_work() == {}


def test_clear_work_worker_still_writes_nothing_left(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker adds a file after the names in the folder were read."""
    folder = home.make_work("wine-0001")
    (folder / "part-1.parquet").touch()
    remove, left = os.unlink, ["part-2.parquet", "part-3.parquet"]

    def unlink(path: str, **more: Any) -> None:
        remove(path, **more)
        if left:
            (folder / left.pop()).touch()

    monkeypatch.setattr(os, "unlink", unlink)
    home.clear_work("wine-0001")
    assert not left
    assert not folder.exists()
