"""The example of two registries: it waits for the reviewers of both, then the centre publishes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.two_registries.__main__ import COLUMNS, PERSONS
from tests.support.forkserver import run_cli
from warehouse.publishing.manifest import verify

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
REVIEWER = "1"  # a user that every system has
LIMIT = 1100  # on the amplification of a complete record, in the file of the centre


def run_example(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.two_registries", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder.parent, env=env, capture_output=True, text=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act for a reviewer")
def test_two_registries_wait_for_reviewers_then_publish(tmp_path: Path):
    folder = tmp_path / "registries"
    first = run_example(folder)
    assert first.returncode == 4, first.stdout + first.stderr
    assert not list(folder.glob("centre/.ppdm/published/*/0001"))
    for name in COLUMNS:
        given = [REVIEWER, "decide", "persons-0001", "--approve", "--note", "I looked.", "--json"]
        env = {"PPDM_HOME": str(folder / name / ".ppdm")}
        decided = run_cli(given, env=env, entry="tests.support.entries:as_user", timeout=600)
        assert decided.exit_code == 0, decided
    second = run_example(folder)
    assert second.returncode == 0, second.stdout + second.stderr
    (published,) = folder.glob("centre/.ppdm/published/*/0001")
    manifest = verify(published).manifest
    assert manifest["rows"] == PERSONS
    assert 0 < float(manifest["guarantee"]["ln_record"]) <= math.log(LIMIT)
    signed = [each["signed"]["statement"] for each in manifest["sites"]["verdicts"]]
    assert [(each["outcome"], each["approvals"]) for each in signed] == [("REVIEW", 1)] * 2
    text = json.dumps(manifest)
    assert not any(f"P{10_000 + 7 * i}" in text for i in range(PERSONS))
