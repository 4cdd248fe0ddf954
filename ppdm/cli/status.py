"""`ppdm status`: list the runs of a home."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.console import format_runs
from ppdm.cli.home import open_home
from ppdm.cli.progress import show_progress
from ppdm.cli.result import CommandResult


def list_status(home: Path | None) -> CommandResult:
    """Return every run of a home with its stage."""
    from warehouse.database import list_runs

    store = open_home(home)
    with show_progress(), store.transaction("status") as db:
        runs = list_runs(db)
    rows = [
        {"release_id": run.release_id, "stage": run.stage, "started": run.started.isoformat()}
        for run in runs
    ]
    return CommandResult(format_runs(runs), {"runs": rows})
