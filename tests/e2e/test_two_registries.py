"""The example of two registries: it waits for the reviewers of both, then the centre publishes.

Each party has processes, a home and keys of its own, and the gates run their attacks. Once the
registries find their common persons privately.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.parties import FILE, join_parties, run_parties, write_parties
from examples.two_registries.__main__ import COLUMNS, PERSONS, make_files
from tests.support.forkserver import run_cli
from warehouse.publishing.manifest import verify

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
REVIEWER = "1"  # a user that every system has
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act for a reviewer")
LIMIT = 1100  # on the amplification of a complete record, in the file of the centre


def run_example(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.two_registries", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder.parent, env=env, capture_output=True, text=True)


def approve(folder: Path) -> None:
    """Let a reviewer of each registry approve its part."""
    for name in COLUMNS:
        given = [REVIEWER, "decide", "persons-0001", "--approve", "--note", "I looked.", "--json"]
        env = {"PPDM_HOME": str(folder / name / ".ppdm")}
        decided = run_cli(given, env=env, entry="tests.support.entries:as_user", timeout=600)
        assert decided.exit_code == 0, decided


def check_published(folder: Path, persons: int) -> None:
    (published,) = folder.glob("centre/.ppdm/published/*/0001")
    manifest = verify(published).manifest
    assert manifest["rows"] == persons
    assert 0 < float(manifest["guarantee"]["ln_record"]) <= math.log(LIMIT)
    signed = [each["signed"]["statement"] for each in manifest["sites"]["verdicts"]]
    assert [(each["outcome"], each["approvals"]) for each in signed] == [("REVIEW", 1)] * 2
    text = json.dumps(manifest)
    assert not any(f"P{10_000 + 7 * i}" in text for i in range(PERSONS))


@needs_root
def test_two_registries_wait_for_reviewers_then_publish(tmp_path: Path):
    folder = tmp_path / "registries"
    first = run_example(folder)
    assert first.returncode == 4, first.stdout + first.stderr
    assert not list(folder.glob("centre/.ppdm/published/*/0001"))
    approve(folder)
    second = run_example(folder)
    assert second.returncode == 0, second.stdout + second.stderr
    check_published(folder, PERSONS)


@needs_root
def test_two_registries_with_an_intersection_publish_the_common_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One registry lacks 150 persons, the other one 100 others."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder, files = tmp_path / "registries", make_files(True)
    gone = {"health": range(150), "labour": range(150, 250)}
    for name, persons in gone.items():
        ids = {f"P{10_000 + 7 * i}".encode() for i in persons}
        lines = files[name]["persons.csv"].splitlines(keepends=True)
        kept = [line for line in lines if line.split(b",")[0] not in ids]
        assert len(kept) == len(lines) - len(persons)
        files[name]["persons.csv"] = b"".join(kept)
        quick = b'[audit]\neffort = "quick"\nshadow_draws = 1\nsplits = 3\n'
        files[name][FILE] = files[name][FILE].replace(b"[audit]\n", quick)
    write_parties(folder, files)
    join_parties(folder, [*COLUMNS], ["--intersection"])
    assert run_parties(folder, [*COLUMNS]) == dict.fromkeys(("centre", *COLUMNS), 4)
    approve(folder)
    assert run_parties(folder, [*COLUMNS]) == dict.fromkeys(("centre", *COLUMNS), 0)
    check_published(folder, PERSONS - 250)
