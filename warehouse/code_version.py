"""The version of this program's own source code."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

PACKAGES = ("flows", "ppdm", "ppdm_core", "tasks", "warehouse")
SUFFIXES = (".py", ".sql", ".j2", ".css")
MAX_FILES = 4096  # whose digests are kept
ROOT = Path(__file__).resolve().parent.parent


def compute_code_version(root: Path = ROOT) -> str:
    """Return a digest of the source files below ``root`` as they are now.

    A verdict holds only for the code that reached it. A file is read again only after it was
    written or replaced, which changes its status.
    """
    digest = hashlib.sha256()
    for path in sorted(path for package in PACKAGES for path in list_sources(root / package)):
        found = os.stat(path)
        status = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        name = path.removeprefix(f"{root}/")
        digest.update(name.encode() + b"\0" + digest_file(path, status))
    return digest.hexdigest()[:16]


def list_sources(package: Path) -> list[str]:
    """Return the paths of a package's source files."""
    return [
        f"{folder}/{name}"
        for folder, _, names in os.walk(package)
        for name in names
        if name.endswith(SUFFIXES)
    ]


@lru_cache(maxsize=MAX_FILES)
def digest_file(path: str, status: tuple[int, ...]) -> bytes:
    """Return the digest of a file with this status."""
    return hashlib.sha256(Path(path).read_bytes()).digest()
