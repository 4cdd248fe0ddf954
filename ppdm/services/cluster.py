"""A dask cluster on this machine, for trying: a scheduler and workers with TLS of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from ppdm.services.certificates import write_certificates
from ppdm.services.processes import STOP_GRACE_SECONDS, LogMessage
from ppdm_core.model.errors import BadInput, MachineTrouble
from warehouse.engines._sealing import KEY_FILE_VARIABLE, write_cluster_key
from warehouse.home import CLUSTER_RECORD, Home

START_SECONDS = 120.0
POLL_SECONDS = 0.2
SETTINGS = {
    # No page of a scheduler or worker: it would show the cluster without TLS.
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
    # A worker holds replies of a few kilobytes; nothing is worth a file.
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class ClusterRecord:
    """A cluster that was started: its address and its processes."""

    address: str
    scheduler: int  # pid
    workers: tuple[int, ...]

    @property
    def living(self) -> list[psutil.Process]:
        """The processes that run, the scheduler first."""
        return [each for pid in (self.scheduler, *self.workers) for each in find_process(pid)]


def find_process(pid: int) -> list[psutil.Process]:
    """Return the process of a cluster with this pid, if it runs."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        is_ours = any("distributed.cli" in word for word in process.cmdline())
        if is_ours and process.status() != psutil.STATUS_ZOMBIE:
            return [process]
    return []


def start_cluster(root: Path, workers: int, log_message: LogMessage) -> ClusterRecord:
    """Start a scheduler and workers that respond to this machine only."""
    record = read_cluster(root)
    if record and record.living:
        raise BadInput(
            f"The cluster of this home runs already, at {record.address}.",
            remedy="Stop it first: ppdm cluster down",
        )
    folder = Home(root).cluster
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    write_certificates(folder)
    write_cluster_key(folder / "cluster.key")
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(start_scheduler(folder))
        address = wait_for_address(folder, started[0])
        started += [start_worker(folder, address, f"worker-{i + 1}") for i in range(workers)]
        record = ClusterRecord(address, started[0].pid, tuple(each.pid for each in started[1:]))
        (folder / CLUSTER_RECORD).write_text(json.dumps(asdict(record)))
        wait_for_workers(folder, started, workers, log_message)
    except BaseException:
        for each in started:
            each.kill()
            each.wait()
        raise
    for each in started:
        each.returncode = 0  # it outlives this command, and Popen would warn of that
    return record


def stop_cluster(root: Path) -> bool:
    """End the processes of a cluster and remove its keys; return whether it ran."""
    record = read_cluster(root)
    left = record.living if record else []
    was_running = bool(left)
    for send in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                send(process)
        left = psutil.wait_procs(left, timeout=STOP_GRACE_SECONDS)[1]
    shutil.rmtree(Home(root).cluster, ignore_errors=True)
    return was_running


def read_cluster(root: Path) -> ClusterRecord | None:
    """Return the record of the cluster of a home, or None if there is none."""
    try:
        content = json.loads((Home(root).cluster / CLUSTER_RECORD).read_text())
        return ClusterRecord(content["address"], content["scheduler"], tuple(content["workers"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def list_tls_options(folder: Path) -> list[str]:
    """Return the options of dask that name the certificates in a folder."""
    names = {
        "--tls-ca-file": "ca.pem",
        "--tls-cert": "certificate.pem",
        "--tls-key": "private.key",
    }
    return [word for option, name in names.items() for word in (option, str(folder / name))]


def start_scheduler(folder: Path, port: int = 0) -> subprocess.Popen[bytes]:
    """Start a scheduler that writes its address to a file in the folder."""
    given = ["--host", "127.0.0.1", "--port", str(port), "--protocol", "tls"]
    given += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    given += ["--scheduler-file", str(folder / "scheduler.json"), *list_tls_options(folder)]
    return spawn(folder, "dask_scheduler", "scheduler", given)


def start_worker(
    folder: Path, address: str, name: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a worker with one thread."""
    given = [address, "--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    given += ["--dashboard-address", "127.0.0.1:0", "--host", "127.0.0.1", "--protocol", "tls"]
    given += ["--local-directory", str(folder / "spill"), *list_tls_options(folder)]
    return spawn(folder, "dask_worker", name, given, environment)


def spawn(
    folder: Path,
    module: str,
    name: str,
    arguments: list[str],
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program of dask, with its output in a file of the folder."""
    key = {KEY_FILE_VARIABLE: str(folder / "cluster.key")}
    log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
            cwd=Path(__file__).resolve().parents[2],
            env={**os.environ, **SETTINGS, **key, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the command
        )
    finally:
        os.close(log)


def wait_for_address(folder: Path, scheduler: subprocess.Popen[bytes]) -> str:
    """Return the address of a scheduler, as soon as it listens."""
    deadline = time.monotonic() + START_SECONDS
    while scheduler.poll() is None and time.monotonic() < deadline:
        with suppress(OSError, ValueError, KeyError):
            return str(json.loads((folder / "scheduler.json").read_text())["address"])
        time.sleep(POLL_SECONDS)
    raise start_failure(folder / "scheduler.log", "scheduler")


def wait_for_workers(
    folder: Path, processes: list[subprocess.Popen[bytes]], count: int, log_message: LogMessage
) -> None:
    """Wait until all workers are connected to the scheduler."""
    log_message(f"Waiting for {count} workers.")
    logs = [folder / f"worker-{i + 1}.log" for i in range(count)]
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and all(each.poll() is None for each in processes):
        if all("Registered to" in log.read_text(errors="replace") for log in logs):
            return
        time.sleep(POLL_SECONDS)
    raise start_failure(logs[0], "workers")


def start_failure(log: Path, what: str) -> MachineTrouble:
    return MachineTrouble(f"The {what} of the cluster did not start.", remedy=f"See {log}.")
