"""A disk that is full, at any step, and one that cannot be written to."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.test_ledger import charges
from tests.support.kills import check_published, check_same
from tests.support.slow_cases import mark_exhaustive
from tests.support.small_disk import fill_disk, mount_disk
from tests.support.small_release import Small

Maker = Callable[..., Small]
MEGABYTE = 2**20
DISK = 64 * MEGABYTE
TROUBLE = 5


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    with mount_disk(tmp_path / "disk", DISK) as folder:
        yield folder


def check_whole(release: Small, unharmed: Small) -> None:
    check_same(release, unharmed)
    assert charges(release.home) == charges(unharmed.home)


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Small:
    release = release_in(tmp_path_factory.mktemp("unharmed")).write()
    assert release.run("", entry="prepared").exit_code == 0
    return release


SIZES = [0, 0.3, 1, 2, 2.6, 3, 3.2, 3.5, 4, 5, 6, 7, 8, 9, 10]  # megabytes; the last is enough


@pytest.mark.slow
@pytest.mark.parametrize("free", mark_exhaustive(SIZES, slow=SIZES[::2]))
def test_release_full_disk_machine_trouble_nothing_lost(
    free: float, disk: Path, unharmed: Small, release_in: Maker
) -> None:
    release = release_in(disk).write()
    ballast = fill_disk(disk, int(free * MEGABYTE))
    result = release.run("release")
    assert result.exit_code == TROUBLE or (result.exit_code == 0 and free > 3), result.stderr
    assert "Traceback" not in result.stderr
    if result.exit_code == TROUBLE:
        assert release.versions() == []
        assert "disk" in result.stderr or "space" in result.stderr
    check_published(release)
    ballast.unlink()
    assert release.run("release").exit_code == 0
    check_whole(release, unharmed)


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=pytest.mark.slow) for step in ("", "draw candidate", "judge")]
)
def test_release_read_only_disk_machine_trouble(
    step: str, disk: Path, unharmed: Small, release_in: Maker
) -> None:
    """From the start, or after one of the steps."""
    release = release_in(disk).write()
    if step:
        assert release.run(step, entry="prepared").exit_code == 0
    remount(disk, "ro")
    result = release.run("release")
    remount(disk, "rw")
    assert result.exit_code == TROUBLE, result
    assert "Traceback" not in result.stderr and "read-only" in result.stderr.lower()
    assert release.versions() == []
    assert release.run("release").exit_code == 0
    check_whole(release, unharmed)


def remount(disk: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(disk)], check=True)
