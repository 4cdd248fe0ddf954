"""The version of this program's own source code."""

from __future__ import annotations

import hashlib
from pathlib import Path

PACKAGES = ("flows", "ppdm", "ppdm_core", "tasks", "warehouse")


def compute_code_version() -> str:
    """Return a digest of the source files as they are now.

    A verdict holds only for the code that reached it.
    """
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.suffix in (".py", ".sql", ".j2", ".css"):
                digest.update(str(path.relative_to(root)).encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
