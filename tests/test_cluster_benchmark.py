from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import cluster

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_cluster_benchmark_equal_digests_exit_0() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.cluster", "40000", "6"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run
    names = [line[:10].strip() for line in run.stdout.splitlines()[1:]]
    assert names == ["1 process", "1 workers", "2 workers"]


@pytest.mark.parametrize(("digests", "code"), [("aaa", 0), ("aba", 1), ("aab", 1)])
def test_cluster_benchmark_digests_differ_exit_1(
    digests: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter(digests)
    monkeypatch.setattr(sys, "argv", ["cluster", "20"])
    monkeypatch.setattr(cluster, "measure", lambda *given: next(found))
    monkeypatch.setattr(cluster, "start_cluster", lambda *given: SimpleNamespace(living=[]))
    monkeypatch.setattr(cluster, "stop_cluster", lambda folder: True)
    monkeypatch.setattr(cluster, "find_home_cluster", lambda *given: None)
    monkeypatch.setattr(cluster, "Dask", lambda settings: nullcontext())
    assert cluster.main() == code
