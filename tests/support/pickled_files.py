"""Files that a reader would execute: pickles, also under another name."""

from __future__ import annotations

import pickletools
import warnings
from pathlib import Path


def is_pickle(data: bytes) -> bool:
    """Return whether bytes are a complete pickle."""
    try:
        with warnings.catch_warnings():  # about escapes in what is no text
            warnings.simplefilter("ignore")
            operations = list(pickletools.genops(data))
    except (ValueError, IndexError, UnicodeDecodeError, OverflowError):
        return False
    return operations[-1][2] == len(data) - 1


def find_pickles(folder: Path) -> list[str]:
    """Return the files below a folder that are pickles."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(folder)) for path in paths if is_pickle(path.read_bytes()))
