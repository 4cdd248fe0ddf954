"""`ppdm up` and `down`: a Prefect server with its scheduler, and the MLflow pages, of one home."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from ppdm.cli.progress import shown_progress
from ppdm.cli.result import Answer
from ppdm.services import mlflow_server as pages
from ppdm.services.prefect_process import spawn
from ppdm.services.prefect_server import (
    Say,
    deciding,
    lasting_server,
    open_users,
    stop_if_unused,
    wait_for_health,
)
from ppdm.services.processes import (
    Running,
    listening,
    read_record,
    running_as,
    spawn_server,
    write_record,
)
from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.environment import chosen_home, quiet_environment
from tasks.progress import log_progress
from warehouse.home import Home
from warehouse.locks import holder_of

# The ports that people know; any other one is taken where these are in use.
PREFECT_PORT = 4200
MLFLOW_PORT = 5000
NAMES = {"prefect": "Prefect", "mlflow": "MLflow"}


def start_services(home: Path | None) -> Answer:
    root = chosen_home(home)
    Home(root).create()
    quiet_environment(root)
    with shown_progress():
        running = start_missing(root, log_progress)
    addresses = {service: each.address for service, each in running.items()}
    api = f"{addresses['prefect']}/api"
    lines = [f"{NAMES[service]:<8} {address}" for service, address in addresses.items()]
    lines += [
        "Both answer this machine only. They stay until: ppdm down" + option(home),
        f"For the commands of Prefect itself: export PREFECT_API_URL={api}",
    ]
    return Answer("\n".join(lines), {"home": str(root), "pages": addresses, "api": api})


def start_missing(root: Path, say: Say) -> dict[str, Running]:
    """Both services, those that run already among them; if one fails, what was started ends."""
    with deciding(root, say):
        before = up(root)
        # Two servers on one database would do all scheduled work twice.
        if "prefect" not in before and not end_shared(root):
            raise MachineTrouble(
                "A release is using a Prefect server of its own right now.",
                remedy="Run `ppdm up` again when it has ended.",
            )
        starters: dict[str, Callable[[Path], Running]] = {
            "prefect": start_prefect,
            "mlflow": start_mlflow,
        }
        running = {name: before.get(name) or start(root) for name, start in starters.items()}
    try:
        for service, each in running.items():
            wait_for_health(each, NAMES[service], log(root, service), say)
    except (MachineTrouble, KeyboardInterrupt):
        for service in running.keys() - before.keys():
            end(root, service)
        raise
    return running


def up(root: Path) -> dict[str, Running]:
    """What an earlier `up` started and is still alive."""
    records = {service: read_record(Home(root).up_record(service)) for service in NAMES}
    return {service: each for service, each in records.items() if each and each.is_alive}


def end_shared(root: Path) -> bool:
    users = open_users(root)
    try:
        return stop_if_unused(root, users)
    finally:
        os.close(users)


def start_prefect(root: Path) -> Running:
    return spawn(
        record=Home(root).up_record("prefect"),
        log=log(root, "prefect"),
        prefect_home=root / "views" / "prefect",
        users=None,
        port=PREFECT_PORT,
    )


def start_mlflow(root: Path) -> Running:
    record = Home(root).up_record("mlflow")
    with listening(MLFLOW_PORT) as listener:
        port = listener.getsockname()[1]
        process = spawn_server(
            [pages.MODULE, str(port), str(listener.fileno()), str(record), str(root)],
            listener=listener,
            environment=os.environ,
            log=log(root, "mlflow"),
        )
    running = running_as(process.pid, port, pages.MODULE, pages.HEALTH)
    write_record(record, running)
    return running


def stop_services(home: Path | None, now: bool) -> Answer:
    """Stop exactly what `up` started."""
    root = chosen_home(home)
    check_home(root)
    with shown_progress(), deciding(root, log_progress):
        running = up(root)
        if running and not now:
            check_unused(root)
        for service in NAMES:
            end(root, service)
    names = ", ".join(NAMES[service] for service in running)
    text = f"Stopped: {names}." if running else "Nothing was running."
    return Answer(text, {"home": str(root), "stopped": list(running)})


def check_home(root: Path) -> None:
    if not Home(root).private.is_dir():
        raise BadInput(
            f"There is no home in {root}.",
            file=str(root),
            remedy="Name it with --home or PPDM_HOME; `ppdm up` or a release makes one.",
        )


def check_unused(root: Path) -> None:
    holders = [holder_of(lock) for lock in sorted(Home(root).locks.glob("*-*.lock"))]
    named = [holder for holder in holders if holder]
    if named or (lasting_server(root) and not end_shared(root)):
        who = "; ".join(named) or "a command"
        raise MachineTrouble(
            f"The Prefect server is in use by {who}.",
            remedy="Stop `ppdm serve` with Ctrl-C, wait until releases have ended, or stop the "
            "server under them: ppdm down --now",
        )


def end(root: Path, service: str) -> None:
    record = Home(root).up_record(service)
    running = read_record(record)
    if running is not None:
        running.stop()
    record.unlink(missing_ok=True)


def log(root: Path, service: str) -> Path:
    return root / "private" / f"up-{service}.log"


def option(home: Path | None) -> str:
    return "" if home is None else f" --home {shlex.quote(str(home))}"
