"""Dask clusters for tests: one inside this process, and real processes."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil

from ppdm.services.certificates import write_certificates
from ppdm.services.cluster import start_scheduler, start_worker, wait_for_address
from tests.support.scheduled_home import wait_until
from warehouse.engines import EngineSettings
from warehouse.engines._sealing import KEY_FILE_VARIABLE, write_cluster_key


def write_keys(folder: Path) -> EngineSettings:
    """Write certificates and a cluster key; return settings without an address."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_certificates(folder)
    write_cluster_key(folder / "cluster.key")
    return name_files(folder)


def name_files(folder: Path) -> EngineSettings:
    """Return settings with the files in a folder."""
    return EngineSettings(
        kind="dask",
        ca=str(folder / "ca.pem"),
        certificate=str(folder / "certificate.pem"),
        private_key=str(folder / "private.key"),
        secret=str(folder / "cluster.key"),
    )


def read_settings(folder: Path) -> EngineSettings:
    """Return the settings of a cluster that another process started in a folder."""
    address = json.loads((folder / "scheduler.json").read_text())["address"]
    return replace(name_files(folder), address=address)


@contextmanager
def open_inner_cluster(folder: Path, workers: int = 2) -> Iterator[EngineSettings]:
    """Start a cluster with TLS whose workers are threads of this process."""
    from distributed import LocalCluster, Security

    settings = write_keys(folder)
    before = os.environ.get(KEY_FILE_VARIABLE)
    os.environ[KEY_FILE_VARIABLE] = settings.secret
    files = {
        f"tls_{role}_{kind}": path
        for role in ("scheduler", "worker", "client")
        for kind, path in (("cert", settings.certificate), ("key", settings.private_key))
    }
    security = Security(require_encryption=True, tls_ca_file=settings.ca, **files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = LocalCluster(
            n_workers=workers,
            processes=False,
            threads_per_worker=1,
            protocol="tls",
            host="127.0.0.1",
            dashboard_address=None,
            security=security,
        )
    try:
        yield replace(settings, address=cluster.scheduler_address)
    finally:
        cluster.close()
        del os.environ[KEY_FILE_VARIABLE]
        if before is not None:
            os.environ[KEY_FILE_VARIABLE] = before


class RealCluster:
    """A scheduler and workers as processes, which tests kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = write_keys(folder)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.start_scheduler()

    def start_scheduler(self, port: int = 0) -> None:
        (self.folder / "scheduler.json").unlink(missing_ok=True)
        process = start_scheduler(self.folder, port)
        self.processes["scheduler"] = process
        address = wait_for_address(self.folder, process)
        self.settings = replace(self.settings, address=address)

    def start_worker(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        process = start_worker(self.folder, self.settings.address, name, environment)
        self.processes[name] = process
        log = self.folder / f"{name}.log"
        count = log.read_text().count("Registered to")
        wait_until(lambda: log.read_text().count("Registered to") > count, 120)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)


def list_attacks(cluster: RealCluster) -> dict[str, list[psutil.Process]]:
    """Return the attack processes of all workers that have one."""
    found = {
        name: psutil.Process(worker.pid).children()
        for name, worker in cluster.processes.items()
        if name != "scheduler"
    }
    return {name: children for name, children in found.items() if children}
