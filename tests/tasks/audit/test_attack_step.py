from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from ppdm_core.audit.runner import run_audit
from tasks.audit.attack_process import AttackProcess
from tasks.audit.attack_step import PROCESSES, AttackStep, end_processes, run_on_workers
from tests.contract.broken_engines import InThisProcess
from tests.support.clusters import RealCluster
from tests.tasks.audit.test_attack_process import job
from warehouse.engines.dask import Dask

NAMES = ("distance_loss", "knn_accuracy", "distance_loss")
assert job  # a fixture


@pytest.mark.extended
def test_run_on_workers_same_as_one_process(job):
    with AttackProcess(job) as process:
        expected = [process.ask(name, 60.0) for name in NAMES]
    with InThisProcess() as engine:
        assert list(run_on_workers(job, NAMES, engine)) == expected
    assert not PROCESSES


@pytest.mark.extended
def test_attack_step_hang_killed_at_limit(job):
    step = AttackStep(job)
    try:
        assert step(("distance_loss", 0.01)).error == "TimeLimit"
        assert [each.process for each in PROCESSES.values()] == [None]  # it was killed
    finally:
        end_processes()


@pytest.mark.slow
def test_run_on_workers_worker_killed_same_scores(job, tmp_path: Path):
    cluster = RealCluster(tmp_path / "cluster")
    try:
        for name in ("one", "two"):
            cluster.start_worker(name)
        with AttackProcess(job) as process:
            expected = run_audit(lambda name: process.ask(name, 60.0), NAMES)
        with Dask(cluster.settings) as engine:
            answers = run_on_workers(job, NAMES, engine)
            first = next(answers)
            attacks = find_attacks(cluster)
            assert attacks
            cluster.kill("one")
            found = iter([first, *answers])
            assert run_audit(lambda name: next(found), NAMES) == expected
        deadline = time.monotonic() + 30
        while any(each.is_running() for each in attacks) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not find_attacks(cluster), "an attack process is left"
    finally:
        cluster.close()


def find_attacks(cluster: RealCluster) -> list[psutil.Process]:
    """Return the attack processes of all workers."""
    return [
        child
        for name, worker in cluster.processes.items()
        if name != "scheduler"
        for child in psutil.Process(worker.pid).children()
    ]
