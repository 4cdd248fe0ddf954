"""The code version follows every change of a source file, although digests are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warehouse.code_version import compute_code_version


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("tasks/a.py", "tasks/sub/b.sql", "warehouse/c.j2", "ppdm/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    return tmp_path


def test_compute_code_version_same_files_same_version(tree: Path):
    assert compute_code_version(tree) == compute_code_version(tree)


@pytest.mark.parametrize("name", ["tasks/a.py", "tasks/sub/b.sql", "warehouse/c.j2"])
def test_compute_code_version_same_size_and_time_other_content_other_version(tree: Path, name: str):
    before, path = compute_code_version(tree), tree / name
    times = path.stat()
    path.write_text("x = 2")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert compute_code_version(tree) != before


def test_compute_code_version_replaced_file_other_version(tree: Path):
    before = compute_code_version(tree)
    (tree / "new").write_text("x = 3")
    (tree / "new").rename(tree / "tasks" / "a.py")
    assert compute_code_version(tree) != before


def test_compute_code_version_renamed_or_added_file_other_version(tree: Path):
    versions = [compute_code_version(tree)]
    (tree / "tasks" / "a.py").rename(tree / "tasks" / "z.py")
    versions.append(compute_code_version(tree))
    (tree / "flows").mkdir()
    (tree / "flows" / "e.py").touch()
    versions.append(compute_code_version(tree))
    assert len(set(versions)) == 3


def test_compute_code_version_other_file_ignored(tree: Path):
    before = compute_code_version(tree)
    (tree / "ppdm" / "d.txt").write_text("changed")
    assert compute_code_version(tree) == before
