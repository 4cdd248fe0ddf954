"""`ppdm cluster` and its example, as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from ppdm.services.cluster import read_cluster
from ppdm_core.model.manifest import NAME
from tests.support.pseudo_terminal import PPDM, TerminalCommand

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def ask(home: Path, *words: str, exit_code: int = 0) -> dict[str, Any]:
    """Return the reply of a command on a home."""
    run = subprocess.run(
        [*PPDM, *words, "--home", str(home), "--json"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == exit_code, run
    return dict(json.loads(run.stdout))


def list_cluster_remarks(home: Path, exit_code: int = 0) -> list[tuple[str, str | None]]:
    remarks = ask(home, "doctor", exit_code=exit_code)["remarks"]
    return [(each["text"], each["remedy"]) for each in remarks if each["about"] == "cluster"]


def test_cluster_up_doctor_down_no_process_and_no_key_left(tmp_path: Path) -> None:
    home = tmp_path / "home"
    up = TerminalCommand([*PPDM, "cluster", "up", "--workers", "2", "--home", str(home)])
    assert up.wait() == 0
    record = read_cluster(home)
    assert record is not None
    processes = record.living
    try:
        assert len(processes) == 3
        assert record.address in up.text and "ppdm cluster down" in up.text
        assert list_cluster_remarks(home) == [(f"{record.address}, 2 workers", None)]
        again = ask(home, "cluster", "up", exit_code=2)
        assert "runs already" in again["error"]["message"]
        keys = {path.name: path.stat().st_mode & 0o777 for path in find_keys(home)}
        assert keys == {"private.key": 0o600, "cluster.key": 0o600}
        processes[-1].kill()
        processes[-1].wait(10)
        ((text, remedy),) = list_cluster_remarks(home, exit_code=5)
        assert "1 of 2 workers have died" in text and remedy is not None
    finally:
        down = ask(home, "cluster", "down")
    assert not down["running"]
    assert not any(map(psutil.Process.is_running, processes))
    assert find_keys(home) == []
    assert not (home / "private" / "cluster").exists()
    assert list_cluster_remarks(home) == []


def find_keys(home: Path) -> list[Path]:
    return sorted((home / "private" / "cluster").glob("*.key"))


def test_example_cluster_publishes_and_stops_it(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    run = subprocess.run(
        [sys.executable, "-m", "examples.cluster", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run
    version = folder / ".ppdm" / "published" / "patients" / "0001"
    assert (version / NAME).exists() and (version / "data.parquet").exists()
    private = folder / ".ppdm" / "private"
    assert list((private / "work").iterdir()) == []
    assert not (private / "cluster").exists()
    assert not [each for each in psutil.process_iter() if str(folder) in " ".join(read_words(each))]
    again = subprocess.run(
        [sys.executable, "-m", "examples.cluster", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 1 and "is not empty" in again.stderr


def read_words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
