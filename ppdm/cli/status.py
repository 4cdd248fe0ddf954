"""`ppdm status`: list the runs of a home."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.cli.console import format_table
from ppdm.cli.home import open_home
from ppdm.cli.result import CommandResult

if TYPE_CHECKING:
    from warehouse.database import Run


def list_status(home: Path | None) -> CommandResult:
    """Return every run of a home with its stage."""
    from warehouse.database import list_runs

    store = open_home(home)
    with store.transaction("status") as db:
        runs = list_runs(db)
    rows = [
        {"release_id": run.release_id, "stage": run.stage, "started": run.started.isoformat()}
        for run in runs
    ]
    return CommandResult(format_runs(runs), {"runs": rows})


def format_runs(runs: Sequence[Run]) -> str:
    """Return one line for each run."""
    rows = [(run.release_id, run.stage, f"{run.started:%Y-%m-%d %H:%M}") for run in runs]
    return format_table(rows) if rows else "No release yet."
