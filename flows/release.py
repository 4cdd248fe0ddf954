"""The flow of one release: one task for each step."""

from __future__ import annotations

import logging
from typing import Any

from prefect import State, flow
from prefect.runtime import flow_run
from prefect.states import StateType

from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile
from ppdm_core.model.errors import BadInput, Defect, PpdmError
from tasks.audit.attack_process import start_spare_process
from tasks.audit.task import attack_shadows
from tasks.dataset_lock import StillRunning, hold_dataset
from tasks.defect_report import write_defect_report
from tasks.engine import check_engine
from tasks.environment import set_library_defaults
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.judge.task import judge
from tasks.notify.hooks import check_hooks, run_hooks
from tasks.notify.prefect_artifacts import show_failure
from tasks.notify.task import log_rejection, log_release
from tasks.progress import log_progress, print_served_outcome
from tasks.publish.task import publish_candidate
from tasks.sanitize.task import draw_candidate
from tasks.signing_key import load_author_key
from warehouse.database import Store
from warehouse.home import Home
from warehouse.stages import Stage

SKIPPED = "skipped"  # outcome of a scheduled run that made no release


@flow(name="release", flow_run_name="{file.dataset.name} {file.sanitizer.method}", retries=0)
def release(file: ReleaseFile, dry_run: bool = False) -> State[Any]:
    """Ingest a table, perturb it, attack the copy, judge it, and publish only what was approved.

    Args:
        file: The content of the release file; see `ppdm init` for a commented draft.
        dry_run: Do everything except publishing.
    """
    store = Store(Home(file.home()), say=log_progress)
    release_id: str | None = None
    try:
        check_hooks(store.home)
        context = build_checked_context(file)
        set_library_defaults(file.home())  # for workers that `ppdm` did not start
        load_author_key(file.home())
        with hold_dataset(context), start_spare_process():
            check_engine(context)
            release_id = begin_release(context, flow_run.id)
            load_raw(context, release_id)
            validate(context, release_id)
            draw_candidate(context, release_id)
            attack_shadows(context, release_id)
            judge(context, release_id, dry_run)
            stage = publish_candidate(context, release_id, dry_run)
            message = log_release(context, release_id)
        run_hooks(store, context.dataset, release_id, stage)
        return build_final_state(stage, message)
    except BadInput as error:
        log_rejection(file.dataset.name, file.sanitizer.method, error)
        run_hooks(store, file.dataset.name, release_id, Stage.REJECTED)
        return build_final_state(Stage.REJECTED, f"{error} Nothing was published.", error)
    except StillRunning as error:
        return build_final_state(SKIPPED, error.message, error)
    except PpdmError as error:
        raise report_failure(file, error) from None


def build_final_state(
    outcome: Stage | str, message: str, error: Exception | None = None
) -> State[Any]:
    """Return the last state of the flow run.

    Its name is a standard one, because Prefect's pages filter by those: run name, tags and message
    tell the outcome.
    """
    log_progress(message)
    print_served_outcome(message)
    kind = StateType.CANCELLED
    if isinstance(outcome, Stage):
        kind = StateType[outcome.prefect_state]
    if kind != StateType.COMPLETED:
        logging.getLogger("prefect.flow_runs").addFilter(is_not_engine_exit)
    return State(type=kind, message=message, data=error or str(outcome))


def report_failure(file: ReleaseFile, error: PpdmError) -> PpdmError:
    """Report a failed release in Prefect and on the console of `ppdm serve`; return the error."""
    if isinstance(error, Defect):
        error = write_defect_report(file.home(), error)
    print_served_outcome(f"{file.dataset.name} failed. {error}")
    show_failure(file.dataset.name, file.sanitizer.method, error)
    return error


def is_not_engine_exit(record: logging.LogRecord) -> bool:
    """Return whether a log record is not the traceback of an engine that exits.

    A scheduled run that ends as refused looks like a crash to Prefect's engine, which would print
    a traceback below the message.
    """
    return not str(record.msg).startswith("Engine execution exited")
