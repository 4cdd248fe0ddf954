"""The servers of a home that run until they are stopped: Prefect with its scheduler, and MLflow."""

from __future__ import annotations

from pathlib import Path

from ppdm.services import mlflow_server, prefect_process
from ppdm.services.prefect_server import find_lasting_server, lock_server_start, stop_if_unused
from ppdm.services.processes import (
    LogMessage,
    ServerProcess,
    read_record,
    spawn_server,
    wait_for_health,
)
from ppdm_core.model.errors import MachineTrouble
from warehouse.home import Home
from warehouse.locks import read_holder

# The default ports of the two tools; any free port is taken if they are in use.
PREFECT_PORT = 4200
MLFLOW_PORT = 5000
SERVER_NAMES = {"prefect": "Prefect", "mlflow": "MLflow"}


def start_missing_servers(root: Path, log_message: LogMessage) -> dict[str, ServerProcess]:
    """Return both servers; start those that do not run. If one fails, stop what was started."""
    with lock_server_start(root, log_message):
        before = find_running_servers(root)
        # Two servers on one database would do all scheduled work twice.
        if "prefect" not in before and not stop_if_unused(root):
            raise MachineTrouble(
                "A release is using a Prefect server of its own right now.",
                remedy="Run `ppdm up` again when it has ended.",
            )
        servers = {
            "prefect": before.get("prefect") or start_prefect(root),
            "mlflow": before.get("mlflow") or start_mlflow(root),
        }
    try:
        for service, server in servers.items():
            wait_for_health(server, SERVER_NAMES[service], log_path(root, service), log_message)
    except (MachineTrouble, KeyboardInterrupt):
        for service in servers.keys() - before.keys():
            stop_server(root, service)
        raise
    return servers


def stop_servers(root: Path, log_message: LogMessage, *, force: bool) -> list[str]:
    """Stop the servers that `ppdm up` started; return which of them were running.

    Unless ``force`` is set, raise MachineTrouble if a release or a schedule uses them.
    """
    with lock_server_start(root, log_message):
        running = find_running_servers(root)
        if running and not force:
            check_unused(root)
        for service in SERVER_NAMES:
            stop_server(root, service)
    return list(running)


def find_running_servers(root: Path) -> dict[str, ServerProcess]:
    """Return the servers that `ppdm up` started and that are alive."""
    records = {service: read_record(Home(root).up_record(service)) for service in SERVER_NAMES}
    return {service: server for service, server in records.items() if server and server.is_alive}


def start_prefect(root: Path) -> ServerProcess:
    """Start the Prefect server with its scheduler and write its record."""
    return spawn_server(
        prefect_process.MODULE,
        [str(root), "lasting"],
        port=PREFECT_PORT,
        health=prefect_process.HEALTH_PATH,
        record=Home(root).up_record("prefect"),
        log=log_path(root, "prefect"),
    )


def start_mlflow(root: Path) -> ServerProcess:
    """Start the server of the MLflow pages and write its record."""
    return spawn_server(
        mlflow_server.MODULE,
        [str(root)],
        port=MLFLOW_PORT,
        health=mlflow_server.HEALTH_PATH,
        record=Home(root).up_record("mlflow"),
        log=log_path(root, "mlflow"),
    )


def check_unused(root: Path) -> None:
    """Raise MachineTrouble if a command uses the Prefect server of a home."""
    holders = [read_holder(lock) for lock in sorted(Home(root).locks.glob("*-*.lock"))]
    named = [holder for holder in holders if holder]
    if named or (find_lasting_server(root) and not stop_if_unused(root)):
        users = "; ".join(named) or "a command"
        raise MachineTrouble(
            f"The Prefect server is in use by {users}.",
            remedy="Stop `ppdm serve` with Ctrl-C, wait until releases have ended, or stop the "
            "server while it is in use: ppdm down --now",
        )


def stop_server(root: Path, service: str) -> None:
    """Stop a server that `ppdm up` started, and remove its record."""
    record = Home(root).up_record(service)
    server = read_record(record)
    if server is not None:
        server.stop()
    record.unlink(missing_ok=True)


def log_path(root: Path, service: str) -> Path:
    """Return the log file of a server that `ppdm up` starts."""
    return root / "private" / f"up-{service}.log"
