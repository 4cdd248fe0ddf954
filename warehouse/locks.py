"""Locks between processes: one locked file for each resource that must not be shared.

The kernel frees a lock when its process ends, however it ends, so no lock is ever stale.
A child made by a plain fork shares the locks of its parent; start children with spawn or
forkserver while one is held. A lock file names its holder, and the servers have users that share
a lock: no lock of the package filelock does both.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ppdm_core.model.errors import MachineTrouble
from warehouse.home import file_mode

SILENT_SECONDS = 1.0  # of waiting before a message
MAX_DELAY_SECONDS = 0.25
UNKNOWN_HOLDER = "another process"
CHECK_HOME = "Check the permissions and the free space of the home folder."


def locks_folder(home: Path) -> Path:
    """Return the folder of a home's lock files, made if need be."""
    folder = home / "private" / "locks"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise MachineTrouble(
            f"The folder of the lock files cannot be made: {error.strerror}.", remedy=CHECK_HOME
        ) from None
    return folder


@contextmanager
def hold(path: Path, *, holder: str, limit: float, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file exclusively; wait for at most ``limit`` seconds."""
    descriptor = open_lock(path)
    try:
        _wait(descriptor, path, limit, say)
        _write(descriptor, f"{holder} (pid {os.getpid()})")
        yield
    finally:
        os.close(descriptor)


def read_holder(path: Path) -> str | None:
    """Return the process that holds a lock, or None if it is free."""
    if not path.exists():
        return None
    descriptor = open_lock(path)
    try:
        if _try_lock(descriptor, fcntl.LOCK_SH):
            return None
        return _read(descriptor)
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path, limit: float, say: Callable[[str], None]) -> None:
    start = time.monotonic()
    delay, is_reported = 0.01, False
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        waited = time.monotonic() - start
        if waited >= limit:
            raise MachineTrouble(
                f"The lock '{path.name}' was not free within {limit:g} s: "
                f"{_read(descriptor)} holds it.",
                remedy="Wait until that process has ended, then run the same command again.",
            )
        if waited >= SILENT_SECONDS and not is_reported:
            say(f"Waiting for '{path.stem}': {_read(descriptor)} holds it.")
            is_reported = True
        time.sleep(min(delay, max(limit - waited, 0.0)))
        delay = min(2 * delay, MAX_DELAY_SECONDS)


def open_lock(path: Path) -> int:
    """Return a descriptor of a lock file, made if need be with the mode of private files."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, file_mode(path.parent))
        return descriptor
    except OSError as error:
        raise MachineTrouble(
            f"The lock file '{path.name}' cannot be opened: {error.strerror}.", remedy=CHECK_HOME
        ) from None


def _try_lock(descriptor: int, mode: int) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(descriptor: int, text: str) -> None:
    if _read(descriptor) == text:  # the same release takes most locks again and again
        return
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _read(descriptor: int) -> str:
    return os.pread(descriptor, 4096, 0).decode(errors="replace") or UNKNOWN_HOLDER
