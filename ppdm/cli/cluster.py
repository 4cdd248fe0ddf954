"""`ppdm cluster`: start and stop a dask cluster on this machine, for trying."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group

from ppdm.cli.console import format_home_option, make_grid
from ppdm.cli.replies.others import ClusterReply
from ppdm.cli.result import CommandResult
from ppdm.services.cluster import start_cluster, stop_cluster
from tasks.environment import choose_home
from tasks.progress import Step, log_progress, start_step
from warehouse.home import Home


def start_home_cluster(home: Path | None, workers: int) -> CommandResult:
    """Start a scheduler and workers with TLS; release files use them by ``kind = "dask"``."""
    root = choose_home(home)
    Home(root).create()
    start_step(Step.START)
    record = start_cluster(root, workers, log_progress)
    option = format_home_option(home)
    view = Group(
        make_grid([("scheduler", record.address), ("workers", str(len(record.workers)))]),
        'Releases of this home use it if their file says: [engine] kind = "dask"',
        f"It responds to this machine only. To stop it: ppdm cluster down{option}",
    )
    reply = ClusterReply(
        home=str(root), address=record.address, workers=len(record.workers), running=True
    )
    return CommandResult(view, reply.as_payload())


def stop_home_cluster(home: Path | None) -> CommandResult:
    """Stop the cluster of a home, and remove its certificates and its key."""
    root = choose_home(home)
    stopped = stop_cluster(root)
    text = "Stopped the cluster." if stopped else "No cluster was running."
    reply = ClusterReply(home=str(root), address=None, workers=0, running=False)
    return CommandResult(text, reply.as_payload())
