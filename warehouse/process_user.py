"""The user of this process, as the kernel knows it.

The ids that the C library returns can be replaced by a preloaded library, and in a user namespace
of its own a process can take any id. So the id is read from /proc/self/status, and it is believed
only if /proc/self/uid_map shows that ids inside and outside are the same. A namespace can have that
map only if its parent has it, too: the ids of nested namespaces are then those of the machine.

Of the four ids the real one counts: a process cannot set it to another user's without that user's
or root's consent, given by a setuid program, sudo or su.

Not covered: a user who changes this program, its interpreter, or the functions that read files; or
who mounts a file system of his own, or other files of the kernel, over /proc.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ppdm_core.model.errors import Refused

PROC = Path("/proc/self")
FULL_MAP = f"{0:10} {0:10} {2**32 - 1:10}\n"  # every id stands for itself
MAX_FILE_BYTES = 65_536


def read_process_uid() -> int:
    """Return the real user id of this process; raise Refused if it cannot be known."""
    if read_kernel_file(PROC / "uid_map") != FULL_MAP:
        raise Refused(
            "It cannot be known who runs this command: a user namespace hides the real user.",
            remedy="Run it under your own user name outside the container or namespace, or in a "
            "container that does not map user ids (Docker: --userns=host).",
        )
    status = PROC / "status"
    for line in read_kernel_file(status).splitlines():
        name, _, value = line.partition(":")
        ids = value.split()  # real, effective, saved, of the file system
        if name == "Uid" and len(ids) == 4:
            return int(ids[0])
    raise unreadable_error(status)


def read_kernel_file(path: Path) -> str:
    """Return the text of a file in /proc/self that the kernel made.

    Such a file has size 0 although it has content. A file that was mounted in its place has a size
    or lies on another device.
    """
    try:
        with path.open("rb") as file:
            found, content = os.fstat(file.fileno()), file.read(MAX_FILE_BYTES)
        is_made_by_kernel = (
            stat.S_ISREG(found.st_mode)
            and found.st_size == 0
            and found.st_dev == path.parent.stat().st_dev
        )
    except OSError:
        is_made_by_kernel = False
    if not is_made_by_kernel:
        raise unreadable_error(path)
    return content.decode("ascii", errors="replace")


def unreadable_error(path: Path) -> Refused:
    """Return the error of a system whose kernel does not say who runs a process."""
    return Refused(
        f"It cannot be known who runs this command: {path} is missing, or not the kernel's.",
        remedy="Run it on a Linux system with /proc mounted.",
    )
