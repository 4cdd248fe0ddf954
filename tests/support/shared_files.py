"""Files that one process of a test run makes and all others use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

HOME = "PPDM_TESTS_HOME"  # names a folder that the processes of a test run share


def make_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return the path of a shared file; the first process that needs it makes it."""
    folder = Path(os.environ[HOME], "shared")
    folder.mkdir(exist_ok=True)
    path, done = folder / name, folder / f"{name}.done"
    with FileLock(folder / f"{name}.lock"):
        if not done.exists():
            make(path)
            done.touch()
    return path
