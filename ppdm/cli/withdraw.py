"""`ppdm withdraw`: withdraw a published version."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.flow_runs import build_result
from ppdm.cli.home import open_home
from ppdm.cli.outcome import read_outcome
from ppdm.cli.release_ids import find_run
from ppdm.cli.result import CommandResult
from tasks.environment import set_library_defaults
from tasks.note_text import check_line
from tasks.notify.hooks import run_hooks
from tasks.notify.mlflow_log import tag_withdrawal
from tasks.progress import log_progress
from warehouse.database import get_run
from warehouse.locks import hold
from warehouse.publishing.withdraw import withdraw_version
from warehouse.stages import Stage

LOCK_LIMIT_SECONDS = 3600.0  # a release of the dataset may be running


def withdraw_release(name: str, reason: str, home: Path | None) -> CommandResult:
    """Withdraw the version that a name stands for, and show how it stands now."""
    reason = check_line("--reason", reason)
    store = open_home(home)
    set_library_defaults(store.home.root)
    store.home.create()  # sets the modes of new files in a shared home
    with store.transaction("withdraw") as db:
        run = find_run(db, name)
    lock, holder = store.home.dataset_lock(run.dataset), f"the withdrawal of {run.release_id}"
    with hold(lock, holder=holder, limit=LOCK_LIMIT_SECONDS, say=log_progress):
        withdrawal = withdraw_version(store, run.release_id, reason)
    if not tag_withdrawal(store.home.root, run.release_id, withdrawal.at, log_progress):
        log_progress("MLflow does not show it; to try again, run the same command")
    run_hooks(store, run.dataset, run.release_id, Stage.WITHDRAWN)
    with store.transaction(f"show {run.release_id}") as db:
        return build_result(read_outcome(db, get_run(db, run.release_id)))
