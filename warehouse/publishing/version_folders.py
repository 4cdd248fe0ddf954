"""The folders of published versions: their names, and what a killed process left of them."""

from __future__ import annotations

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
        hidden = folder.with_name(f".{folder.name}.old.tmp")
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
        checkpoint("leftover hidden")


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
