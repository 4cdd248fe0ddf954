"""`ppdm decide`: approve or reject a release that awaits a decision."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from ppdm.cli.console import make_text
from ppdm.cli.ctrl_c import is_interruption
from ppdm.cli.flow_runs import (
    build_result,
    disable_heartbeats,
    find_error,
    preload_imports,
    write_defect_reports,
)
from ppdm.cli.home import open_home
from ppdm.cli.release_ids import find_run
from ppdm.cli.replies.sites import PoolDecisionBody
from ppdm.cli.result import CommandResult
from ppdm.services.prefect_server import use_prefect_server
from ppdm_core.model.errors import BadInput, Interrupted, PpdmError, Undecided
from tasks.environment import set_library_defaults
from tasks.progress import Step, log_progress, start_step
from tasks.signing_key import PASSPHRASE_VARIABLE, read_private_key
from tasks.sites.pool_review import find_open_pool, record_pool_decision
from warehouse.approvals import Choice
from warehouse.database import get_run
from warehouse.pending_reviews import find_pending_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from prefect import State

    from ppdm.cli.outcome import ReleaseOutcome
    from warehouse.database import Store


def decide_release(
    name: str,
    choice: Choice,
    note: str,
    shown: str | None,
    home: Path | None,
    key_file: Path | None = None,
    passphrase: str | None = None,
) -> CommandResult:
    """Record a decision, signed if a key is given; publish the release if it has all approvals."""
    store = open_home(home)
    with store.transaction("decide") as db:
        release_id = find_run(db, name).release_id
        is_pool = find_open_pool(db, release_id) is not None
    os.environ["PPDM_HOME"] = str(store.home.root)  # the stored file may have named another home
    set_library_defaults(store.home.root)
    from tasks.judge.decision import record_decision

    key = None if key_file is None else read_private_key(key_file, passphrase)
    os.environ.pop(PASSPHRASE_VARIABLE, None)  # no child process inherits it
    if is_pool:
        return decide_pool(store, release_id, choice, note, shown, key)
    file = read_stored_file(store, release_id)
    record_decision(build_context(file), release_id, choice, note, shown, key)
    outcome = read_stored_outcome(store, release_id)
    standing = outcome.summary.standing
    if standing is not None and standing.missing:
        return build_result(outcome)
    try:
        state = run_decide_flow(file, release_id)
    except (KeyboardInterrupt, PpdmError) as error:
        if not is_interruption(error):
            raise
        stage = read_stored_outcome(store, release_id).summary.run.stage
        raise Interrupted(
            f"Interrupted: the decision is recorded, and {release_id} is at its stage '{stage}'.",
            remedy="To carry the decision out, run the same command again.",
        ) from None
    outcome = read_stored_outcome(store, release_id)
    standing = outcome.summary.standing
    if standing is not None and not standing.missing:
        raise find_error(state)  # all approvals are there, but the flow did not publish
    return build_decision_result(outcome)


def decide_pool(
    store: Store,
    release_id: str,
    choice: Choice,
    note: str,
    shown: str | None,
    key: Ed25519PrivateKey | None,
) -> CommandResult:
    """Record a decision of this site about the pool of a common release."""
    context = build_context(find_stored_file(store, release_id))
    standing = record_pool_decision(context, release_id, choice, note, shown, key)
    body = PoolDecisionBody(
        release_id=release_id,
        choice=choice,
        approvals=len(standing.counted),
        approvals_missing=standing.missing if choice == "approve" else 0,
    )
    own = build_result(read_stored_outcome(store, release_id)).payload
    reply = {**own, "pool": body.as_payload()}
    if choice == "approve" and standing.missing:
        error = Undecided(
            f"{standing.missing} of {standing.needed} approvals by this site are missing.",
            remedy="Ask another reviewer of this site.",
        )
        return CommandResult(make_text(error.message), reply, error.exit_code, error=error)
    done = "approved" if choice == "approve" else "rejected"
    text = f"This site has {done} the common release with {release_id}."
    text = f"{text} To continue: ppdm site run FILE"
    return CommandResult(make_text(text), reply)


def read_stored_outcome(store: Store, release_id: str) -> ReleaseOutcome:
    """Return how a release stands now."""
    from ppdm.cli.outcome import read_outcome

    with store.transaction(f"show {release_id}") as db:
        return read_outcome(db, get_run(db, release_id))


def parse_choice(approve: bool, reject: bool) -> Choice:
    """Return the decision that the options state; raise BadInput unless they state one."""
    if approve == reject:
        raise BadInput(
            "A decision is either an approval or a rejection.",
            remedy="Give either --approve or --reject.",
        )
    return "approve" if approve else "reject"


def read_stored_file(store: Store, release_id: str) -> ReleaseFile:
    """Return the release file that is stored with a release that awaits a decision."""
    from tasks.judge.decision import check_awaits_review

    with store.transaction(release_id) as db:
        check_awaits_review(get_run(db, release_id))
    return find_stored_file(store, release_id)


def find_stored_file(store: Store, release_id: str) -> ReleaseFile:
    """Return the release file that is stored for a decision; raise BadInput if there is none."""
    with store.transaction(release_id) as db:
        stored = find_pending_file(db, release_id)
    if stored is None:
        raise BadInput(
            f"No release file is stored for {release_id}.", remedy="Run the release again."
        )
    return ReleaseFile.model_validate(stored)


def run_decide_flow(file: ReleaseFile, release_id: str) -> State[Any]:
    """Run the flow that carries out the recorded decisions; return its state."""
    home = file.home()
    start_step(Step.START)
    with (
        write_defect_reports(home),
        use_prefect_server(home, log_progress, meanwhile=preload_imports),
    ):
        from flows.decide import decide

        with disable_heartbeats():
            return decide(file, release_id, return_state=True)


def build_decision_result(outcome: ReleaseOutcome) -> CommandResult:
    """Return the result: a rejection by the user succeeds, a refusal to publish is an error."""
    result = build_result(outcome)
    is_rejection = outcome.summary.ending.rejected_by is not None
    return CommandResult(result.view, result.payload) if is_rejection else result
