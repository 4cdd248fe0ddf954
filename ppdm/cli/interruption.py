"""What Ctrl-C leaves behind: the stage that a release reached, and how to continue it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import Interrupted, PpdmError
from warehouse.home import Home
from warehouse.stages import FINISHED, Stage

if TYPE_CHECKING:
    from warehouse.database import Run

LIMIT_SECONDS = 5.0  # that a user who wants to stop waits for the warehouse


def describe_interruption(home: Path, dataset: str, again: str) -> Interrupted:
    """Return the error for a release that the user stopped; ``again`` is the same command."""
    try:
        run = find_own_run(home, dataset)
    except PpdmError:  # another process holds the warehouse
        remedy = f"Finished steps are kept. To continue: {again}"
        return Interrupted(f"The release of {dataset} was interrupted.", remedy=remedy)
    if run is None:
        return Interrupted(
            f"Interrupted before the release of {dataset} began; nothing new was kept.",
            remedy=f"To start it: {again}",
        )
    name = run.release_id
    if run.stage in FINISHED or run.stage == Stage.AWAITING_REVIEW:
        return Interrupted(
            f"Interrupted after {name} had reached its stage '{run.stage}', which is kept.",
            remedy=f"See: ppdm show {name}",
        )
    return Interrupted(
        f"Interrupted: {name} is kept at its stage '{run.stage}', and nothing was published.",
        remedy=f"To continue, to the same bytes: {again}",
    )


def find_own_run(home: Path, dataset: str) -> Run | None:
    """Return the newest run of a dataset if this process began or continued it."""
    from warehouse.database import Store, list_runs

    if not Home(home).database.exists():
        return None
    with Store(Home(home), limit=LIMIT_SECONDS).transaction("interruption") as db:
        runs = [run for run in list_runs(db, dataset) if run.pid == os.getpid()]
    return runs[-1] if runs else None
