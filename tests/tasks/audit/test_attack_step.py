from __future__ import annotations

import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ppdm_core.audit.draws import ShadowDraws
from ppdm_core.audit.runner import run_audit
from ppdm_core.model.policy import Attacker, Policy
from tasks.audit.attack_process import AttackProcess
from tasks.audit.attack_step import AttackStep, run_on_workers
from tasks.audit.release_job import ReleaseJob
from tests.contract.broken_engines import InThisProcess
from tests.support.blocking_job import BlockingJob
from tests.support.clusters import RealCluster, list_attacks
from tests.support.scheduled_home import wait_until
from tests.tasks.audit.test_attack_process import job
from warehouse.engines.cancellation import IS_WANTED
from warehouse.engines.dask import Dask
from warehouse.parquet_parts import write_parts

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("distance_loss", "knn_accuracy", "distance_loss")
RUN_BLOCKED_ATTACK = """
import sys
from pathlib import Path
from tests.support.clusters import read_settings
from tests.tasks.audit.test_attack_step import run_blocked
run_blocked(read_settings(Path(sys.argv[1])), Path(sys.argv[2]))
"""
assert job  # a fixture


class InWorkers(InThisProcess):
    """An engine whose worker, this process, attacks."""

    runs_attacks = True


def make_blocking_job(started: Path, limit: float = 3600.0) -> BlockingJob:
    policy = Policy(required=(), limits={}, attacker=Attacker(), shadow_draws=1, time_limit=limit)
    return BlockingJob(policy, bytes(32), str(started))


def run_blocked(settings, started: Path) -> None:
    """Run an attack that blocks."""
    with (
        Dask(settings) as engine,
        run_on_workers(make_blocking_job(started), ["distance_loss"], engine) as answers,
    ):
        list(answers)


def change_rows(job: ReleaseJob, folder: Path) -> ReleaseJob:
    """Return a job of the same records, settings and code, whose release is other rows."""
    (shadow,) = job.shadows.shadows
    blocks = (replace(block, X=block.X + 0.25) for block in job.records.blocks())
    rows = write_parts(blocks, job.records.schema, folder)
    return replace(job, shadows=ShadowDraws((replace(shadow, rows=rows),), (), ()))


def test_run_on_workers_two_jobs_of_one_seed_each_attacked(job: ReleaseJob, tmp_path: Path):
    """Two methods have the same seed if data, attacks and code are the same."""
    jobs = [job, change_rows(job, tmp_path / "moved")]
    expected = [each.make_auditor().run_one("distance_loss") for each in jobs]
    assert expected[0] != expected[1]
    with InWorkers() as engine:
        for each, result in zip(jobs, expected, strict=True):
            with run_on_workers(each, NAMES[:1], engine) as answers:
                assert list(answers) == [result]


def test_run_on_workers_engine_without_attacks_none(job: ReleaseJob):
    with InThisProcess() as engine, run_on_workers(job, NAMES, engine) as answers:
        assert answers is None


def test_attack_step_hang_killed_at_limit(tmp_path: Path):
    started = tmp_path / "started"
    reply = AttackStep(make_blocking_job(started))(("distance_loss", 3.0))
    assert reply.error == "TimeLimit"
    assert list_own_attacks() == []


def test_attack_step_cancelled_killed_before_limit(tmp_path: Path):
    started = tmp_path / "started"
    before = IS_WANTED.set(lambda: not started.exists())
    try:
        reply = AttackStep(make_blocking_job(started))(("distance_loss", 60.0))
    finally:
        IS_WANTED.reset(before)
    assert reply.error == "WorkerDied"
    assert list_own_attacks() == []


@pytest.mark.slow
def test_run_on_workers_worker_killed_same_scores(
    job: ReleaseJob, cluster: RealCluster, tmp_path: Path
):
    with AttackProcess(job) as process:
        expected = run_audit(lambda name: process.ask(name, 60.0), NAMES)
    with Dask(cluster.settings) as engine, run_on_workers(job, NAMES, engine) as answers:
        assert answers is not None
        first = next(answers)
        cluster.kill("one")
        found = iter([first, *answers])
        assert run_audit(lambda name: next(found), NAMES) == expected


@pytest.mark.slow
def test_run_on_workers_worker_of_attack_killed_no_process_left(
    cluster: RealCluster, tmp_path: Path
):
    """The attack runs again on the other worker, which kills it at its limit."""
    started = tmp_path / "started"
    with Dask(cluster.settings) as engine:
        victims, killer = kill_worker_of_attack(cluster, started)
        results = engine.run(AttackStep(make_blocking_job(started)), [("distance_loss", 12.0)])
        assert [each.error for each in results] == ["TimeLimit"]
        killer.join()
    assert victims
    wait_until(lambda: not any(map(is_alive, victims)), 30)
    assert list_attacks(cluster) == {}


def kill_worker_of_attack(
    cluster: RealCluster, started: Path
) -> tuple[list[psutil.Process], threading.Thread]:
    """Kill the worker whose child attacks, as soon as it does; return its children."""
    victims: list[psutil.Process] = []

    def kill() -> None:
        wait_until(started.exists, 60)
        ((name, children),) = list_attacks(cluster).items()
        victims.extend(children)
        cluster.kill(name)

    thread = threading.Thread(target=kill)
    thread.start()
    return victims, thread


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_run_on_workers_client_ends_in_attack_workers_are_free(
    cluster: RealCluster, tmp_path: Path, job: ReleaseJob, how: signal.Signals
):
    """The next release neither waits for the attack nor gets its process."""
    started = tmp_path / "started"
    client = subprocess.Popen(
        [sys.executable, "-c", RUN_BLOCKED_ATTACK, str(cluster.folder), str(started)],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    wait_until(started.exists, 60)
    assert list_attacks(cluster)
    client.send_signal(how)
    assert client.wait(30) != 0
    wait_until(lambda: list_attacks(cluster) == {}, 30)
    with Dask(cluster.settings) as engine, run_on_workers(job, NAMES, engine) as answers:
        assert answers is not None
        assert [each.error for each in answers] == [None] * len(NAMES)
    assert list_attacks(cluster) == {}


@pytest.mark.slow
def test_run_on_workers_scheduler_killed_in_attack_no_process_left(
    cluster: RealCluster, tmp_path: Path
):
    started = tmp_path / "started"
    client = subprocess.Popen(
        [sys.executable, "-c", RUN_BLOCKED_ATTACK, str(cluster.folder), str(started)],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    wait_until(started.exists, 60)
    ((_, attacks),) = list_attacks(cluster).items()
    cluster.kill("scheduler")
    assert client.wait(60) != 0
    wait_until(lambda: not any(map(is_alive, attacks)), 60)


def list_own_attacks() -> list[psutil.Process]:
    """Return the attack processes of this process."""
    children = psutil.Process().children()
    alive = filter(is_alive, children)
    return [each for each in alive if "tasks.audit.attack_worker" in each.cmdline()]


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
