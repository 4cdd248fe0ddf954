"""One release, end to end: the five flows in five lines."""

from __future__ import annotations

import logging
from typing import Any

from prefect import State, flow
from prefect.runtime import flow_run
from prefect.states import StateType

from flows.audit import audit
from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile
from flows.gate import gate
from flows.ingest import ingest
from flows.publish import publish
from flows.sanitize import sanitize
from ppdm_core.model.errors import BadInput, Defect, PpdmError
from tasks.audit.attack_process import spare_worker
from tasks.dataset_lock import StillRunning, taking_turns
from tasks.defect_report import with_report
from tasks.environment import quiet_environment
from tasks.notify.prefect_artifacts import show_failure
from tasks.progress import log_progress, print_served_outcome
from tasks.publish.task import tell, tell_rejected
from warehouse.stages import Stage

SKIPPED = "skipped"  # outcome of a scheduled run that made no release


@flow(name="release", flow_run_name="{file.dataset.name} {file.sanitizer.method}", retries=0)
def release(file: ReleaseFile, dry_run: bool = False) -> State[Any]:
    """Ingest a table, perturb it, attack the copy, judge it, and publish only what was approved.

    Args:
        file: What the release file says; see `ppdm init` for a commented draft.
        dry_run: All but the door: nothing is published.
    """
    try:
        plan = build_checked_context(file)
        quiet_environment(file.home())  # for workers that `ppdm` did not start
        with taking_turns(plan), spare_worker():
            release_id = ingest(file, flow_run.id)
            sanitize(file, release_id)
            audit(file, release_id)
            gate(file, release_id, dry_run)
            outcome = publish(file, release_id, dry_run)
            return ended(outcome, tell(plan, release_id))
    except BadInput as error:
        tell_rejected(file.dataset.name, file.sanitizer.method, error)
        return ended(Stage.REJECTED, f"{error} Nothing was published.", error)
    except StillRunning as error:
        return ended(SKIPPED, error.message, error)
    except PpdmError as error:
        raise failed(file, error) from None


def ended(outcome: Stage | str, message: str, error: Exception | None = None) -> State[Any]:
    """Return the last state of the flow run, named by the stage that the release ended in."""
    log_progress(message)
    print_served_outcome(message)
    if isinstance(outcome, Stage):
        kind, name = StateType[outcome.prefect_state], outcome.state_name
    else:
        kind, name = StateType.CANCELLED, outcome.capitalize()
    if kind != StateType.COMPLETED:
        logging.getLogger("prefect.flow_runs").addFilter(is_no_surprise)
    return State(type=kind, name=name, message=message, data=error or str(outcome))


def failed(file: ReleaseFile, error: PpdmError) -> PpdmError:
    """Told as loudly as a refusal; whoever runs the release decides what follows."""
    if isinstance(error, Defect):
        error = with_report(file.home(), error)
    print_served_outcome(f"{file.dataset.name} failed. {error}")
    show_failure(file.dataset.name, file.sanitizer.method, error)
    return error


def is_no_surprise(record: logging.LogRecord) -> bool:
    """A scheduled run that ends as refused looks like a crash to Prefect's engine, which would
    put a traceback of its own below the message."""
    return not str(record.msg).startswith("Engine execution exited")
