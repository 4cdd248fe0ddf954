"""The example of a common release, by its one command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.parties import FILE
from warehouse.publishing.manifest import verify

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SITES = ("east", "north", "south")


def test_hospitals_one_command_ends_in_a_publication_and_a_report(tmp_path: Path):
    folder = tmp_path / "new"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "examples.hospitals", str(folder)]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    for party in ("centre", *SITES):
        assert f"{party}: exit code 0." in run.stdout
    latest = folder / "centre" / ".ppdm" / "published" / "patients" / "latest"
    assert f"Publication of the centre: {latest}" in run.stdout
    manifest = verify(latest).manifest
    assert manifest["sites"]["count"] == len(SITES) and manifest["verdict"]["outcome"] == "PASS"
    report = (latest / "report.html").read_text()
    assert "3 sites released together" in report
    assert {(folder / party / FILE).read_bytes() for party in ("centre", *SITES)} == {
        (ROOT / "examples" / "hospitals" / FILE).read_bytes()
    }
    assert not (folder / "centre" / "patients.csv").exists()
