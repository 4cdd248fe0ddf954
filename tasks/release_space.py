"""The memory and disk that a release takes at most, and whether the machine has them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ppdm_core.model.errors import MachineTrouble
from ppdm_core.model.policy import Policy
from ppdm_core.sanitizers import Sanitizer
from tasks.audit.cost_estimate import compute_cost

IMPORT_BYTES = 450e6  # of the command, before it reads a row
MAX_STREAM_BYTES = 500e6  # of its engine and blocks, for a table of any size
STREAM_BYTES_PER_CELL = 60.0  # the same, for a small table
DISK_BYTES_PER_NUMBER = 8.5  # in a table of the warehouse and in a part
DISK_BYTES_PER_CODE = 2.0
DISK_BYTES_PER_ROW = 28.0  # key, place and label
DISK_BYTES_PER_DRAW = 60.0  # with the ledger, for each record
NEW_HOME_DISK_BYTES = 11e6  # the databases of warehouse and views
FIXED_DISK_BYTES = 1.5e6  # report, card and views of one release
FitsCheck = Callable[[int, Policy], bool]  # whether so many records fit under a policy
MEMORY_LIMITS = (  # of a container, for either version of control groups
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True)
class ReleaseShape:
    """What the space of a release follows from."""

    rows: int
    columns: int  # of the source
    numbers: int  # numeric features
    codes: int  # categorical features
    released: int  # numeric columns that the method makes

    @property
    def row_bytes(self) -> float:
        """Bytes of a record in a part."""
        numbers = DISK_BYTES_PER_NUMBER * self.numbers
        return numbers + DISK_BYTES_PER_CODE * self.codes + DISK_BYTES_PER_ROW

    @property
    def released_bytes(self) -> float:
        """Bytes of a released row in a part."""
        return replace(self, numbers=self.released).row_bytes


@dataclass(frozen=True)
class ReleaseSpace:
    """The largest memory of all processes of a release, and its largest disk space, in bytes."""

    memory: float
    disk: float


def count_released(sanitizer: Sanitizer, numbers: int) -> int:
    """Return how many numeric columns a method makes, at most."""
    components = getattr(sanitizer, "components", None)
    return min(components, numbers) if isinstance(components, int) else numbers


def estimate_space(shape: ReleaseShape, policy: Policy, *, is_new_home: bool) -> ReleaseSpace:
    """Return the space that a release takes at most.

    Most of the disk is used while copies are attacked: the tables of the warehouse, the records,
    shadow draws, and halves with their draws.
    """
    n, draws = shape.rows, policy.shadow_draws + policy.splits
    cells = max(1, shape.numbers + shape.codes)
    _, attacks = compute_cost((n, cells), draws, 0.0, policy, 1.0)
    stream = min(MAX_STREAM_BYTES, STREAM_BYTES_PER_CELL * n * shape.columns)
    tables = DISK_BYTES_PER_NUMBER * shape.columns + shape.row_bytes + shape.released_bytes
    parts = 2 * shape.row_bytes + policy.shadow_draws * shape.released_bytes
    parts += policy.splits * (shape.row_bytes + shape.released_bytes) / 2
    disk = n * (tables + DISK_BYTES_PER_DRAW + parts) + FIXED_DISK_BYTES
    return ReleaseSpace(
        IMPORT_BYTES + stream + attacks, disk + (NEW_HOME_DISK_BYTES if is_new_home else 0.0)
    )


def check_space(shape: ReleaseShape, policy: Policy, folder: Path, *, is_new_home: bool) -> None:
    """Check that a release fits into the memory and on the disk of ``folder``.

    Otherwise the machine is too small, not the input bad: the next run continues from here.
    """
    memory, disk = read_memory(), read_free_disk(folder)

    def fits(rows: int, changed: Policy) -> bool:
        found = estimate_space(replace(shape, rows=rows), changed, is_new_home=is_new_home)
        return found.memory <= memory and found.disk <= disk

    if fits(shape.rows, policy):
        return
    needed = estimate_space(shape, policy, is_new_home=is_new_home)
    is_memory = needed.memory > memory
    size, there, what = (
        (needed.memory, memory, "memory, and this machine has")
        if is_memory
        else (needed.disk, disk, f"disk below {folder}, where there are")
    )
    raise MachineTrouble(
        f"The release of {shape.rows:,} records takes about {format_size(size)} of {what} "
        f"{format_size(there)}.",
        remedy=f"{suggest_fit(shape.rows, policy, fits)}, or "
        + ("use a machine with more memory." if is_memory else "free space on the disk."),
    )


def suggest_fit(rows: int, policy: Policy, fits: FitsCheck) -> str:
    """Return the setting that makes a release fit: fewer draws, or fewer records."""
    for draws, splits in list_fewer_draws(policy):
        if fits(rows, replace(policy, shadow_draws=draws, splits=splits)):
            return (
                f"Set shadow_draws = {draws} and splits = {splits} in [audit], with which it fits"
            )
    low, high = 0, rows  # the largest number of records that fits, by bisection
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle, policy) else (low, middle)
    return f"Release at most {low:,} records at a time" if low else "Release fewer columns"


def list_fewer_draws(policy: Policy) -> list[tuple[int, int]]:
    """Return pairs of fewer shadow draws and halves, the largest total first."""
    least = min(1, policy.splits)  # attacks on membership need one half
    pairs = [
        (draws, splits)
        for draws in range(1, policy.shadow_draws + 1)
        for splits in range(least, policy.splits + 1)
    ]
    return sorted(pairs, key=lambda pair: (-sum(pair), -pair[0]))[1:]


def read_memory() -> float:
    """Return the memory of this machine or container, in bytes."""
    total = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in MEMORY_LIMITS:
        try:
            total = min(total, float(path.read_text()))
        except (OSError, ValueError):  # no container, or "max"
            continue
    return total


def read_free_disk(folder: Path) -> float:
    """Return the free space of the disk of a folder, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return float(shutil.disk_usage(folder).free)


def format_size(size: float) -> str:
    """Return bytes in MB or GB."""
    return f"{size / 1e6:,.0f} MB" if size < 1e10 else f"{size / 1e9:,.0f} GB"
