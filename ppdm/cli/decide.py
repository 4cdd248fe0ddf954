"""`ppdm decide`: a person approves or rejects a release that the gate left to people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.config.context import plan_of
from flows.config.release_file import ReleaseFile
from ppdm.cli.progress import shown_progress
from ppdm.cli.release import (
    failure_of,
    import_heavy,
    open_home,
    outcome,
    reported,
    without_heartbeats,
)
from ppdm.cli.result import Answer
from ppdm.services.prefect_server import prefect_server
from ppdm_core.model.errors import BadInput
from tasks.environment import quiet_environment
from tasks.progress import log_progress
from warehouse.approvals import Choice, kept_file
from warehouse.runs import must_find

if TYPE_CHECKING:
    from prefect import State

    from tasks.release_summary import Summary
    from warehouse.database import Store


def decide_release(
    release_id: str, approve: bool, note: str, shown: str | None, home: Path | None
) -> Answer:
    store = open_home(home)
    os.environ["PPDM_HOME"] = str(store.home.root)  # wherever the kept file had its own
    quiet_environment(store.home.root)
    from tasks.judge.decision import record_decision
    from tasks.release_summary import read_summary

    file = file_of(store, release_id)
    choice: Choice = "approve" if approve else "reject"
    with shown_progress():
        record_decision(plan_of(file), release_id, choice, note, shown)
    summary = read_summary(store, release_id)
    if summary.standing is not None and summary.standing.missing:
        return outcome(summary)
    state = carry_out(file, release_id)
    summary = read_summary(store, release_id)
    if summary.standing is not None and not summary.standing.missing:
        raise failure_of(state)  # it waits although nobody has to decide any more
    return decided(summary)


def file_of(store: Store, release_id: str) -> ReleaseFile:
    from tasks.judge.decision import check_waiting

    with store.transaction(release_id) as db:
        check_waiting(must_find(db, release_id))
        kept = kept_file(db, release_id)
    if kept is None:
        raise BadInput(f"No release file was kept for {release_id}.", remedy="Release it again.")
    return ReleaseFile.model_validate(kept)


def carry_out(file: ReleaseFile, release_id: str) -> State[Any]:
    home = file.home()
    with (
        reported(home),
        shown_progress(),
        prefect_server(home, log_progress, meanwhile=import_heavy),
    ):
        from flows.decide import decide

        with without_heartbeats():
            return decide(file, release_id, return_state=True)


def decided(summary: Summary) -> Answer:
    """A rejection is what was asked for; a refusal by the door is not."""
    answer = outcome(summary)
    is_rejection = "rejected_by" in summary.ending
    return Answer(answer.text, answer.payload) if is_rejection else answer
