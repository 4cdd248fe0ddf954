"""`ppdm withdraw`: withdraw a published version."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.decide import read_stored_outcome
from ppdm.cli.flow_runs import build_result
from ppdm.cli.home import open_home
from ppdm.cli.release_ids import find_run
from ppdm.cli.result import CommandResult
from tasks.dataset_lock import LOCK_LIMIT
from tasks.environment import set_library_defaults
from tasks.judge.decision import check_line
from tasks.notify.hooks import run_hooks
from tasks.notify.mlflow_log import tag_withdrawal
from tasks.progress import log_progress
from warehouse.locks import hold
from warehouse.publishing.withdraw import withdraw_version
from warehouse.stages import Stage


def withdraw_release(name: str, reason: str, home: Path | None) -> CommandResult:
    """Withdraw the version that a name stands for, and show how it stands now."""
    reason = check_line("--reason", reason)
    store = open_home(home)
    store.home.create()  # sets the modes of new files in a shared home
    with store.transaction("withdraw") as db:
        run = find_run(db, name)
    lock, holder = store.home.dataset_lock(run.dataset), f"the withdrawal of {run.release_id}"
    with hold(lock, holder=holder, limit=LOCK_LIMIT, say=log_progress):
        withdrawal = withdraw_version(store, run.release_id, reason)
    set_library_defaults(store.home.root)
    if not tag_withdrawal(store.home.root, run.release_id, withdrawal.at, log_progress):
        log_progress("MLflow does not show it; to try again, run the same command")
    run_hooks(store, run.dataset, run.release_id, Stage.WITHDRAWN)
    return build_result(read_stored_outcome(store, run.release_id))
