"""The folders of published versions: their names, and what a killed process left of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.checkpoints import checkpoint
from warehouse.home import Home

if TYPE_CHECKING:
    from warehouse.database import Run

LATEST = "latest"  # name of the link to the newest version of a dataset


def hide_folder(folder: Path) -> None:
    """Rename a folder at once, so that a crash leaves no part of it visible.

    ``remove_leftovers`` deletes it.
    """
    if folder.exists():
        hidden = hidden_folder(folder)
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
        checkpoint("leftover hidden")


def hidden_folder(folder: Path) -> Path:
    """Return the name that a folder is hidden by."""
    return folder.with_name(f".{folder.name}.old.tmp")


def remove_leftovers(home: Home, dataset: str) -> None:
    """Remove temporary folders and links that a killed process left; never a version."""
    for leftover in (home.published / dataset).glob(".*.tmp"):
        if leftover.is_symlink():
            leftover.unlink()
        else:
            shutil.rmtree(leftover, ignore_errors=True)


def version_folder(home: Home, run: Run) -> Path:
    """Return the folder that a run is published in."""
    return home.published / run.dataset / f"{run.number:04d}"


def open_to_readers(home: Home, folder: Path) -> None:
    """Let all who may read `published` read a folder in it.

    In a home that a group shares, files are made for the group alone.
    """
    allowed = home.published.stat().st_mode & 0o055
    for path in (folder.parent, folder, *folder.iterdir()):
        bits = allowed if path.is_dir() else allowed & 0o044
        mode = path.stat().st_mode & 0o7777
        if mode | bits != mode:
            path.chmod(mode | bits)


def point_latest(home: Home, dataset: str, version: str) -> bool:
    """Make the link `latest` of a dataset point to a version; return whether it did not before."""
    link = home.published / dataset / LATEST
    if link.is_symlink() and os.readlink(link) == version:
        return False
    draft = link.with_name(".latest.tmp")
    draft.unlink(missing_ok=True)
    draft.symlink_to(version)
    checkpoint("before latest")
    draft.rename(link)
    checkpoint("after latest")
    return True
