"""How a command runs a flow: imports, defect reports, the final state and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm.cli.console import format_home_of
from ppdm.cli.ctrl_c import is_interruption
from ppdm.cli.result import CommandResult
from ppdm.services.prefect_server import stop_orphaned_server, use_prefect_server
from ppdm_core.model.errors import (
    Defect,
    Interrupted,
    MachineTrouble,
    PpdmError,
    Refused,
    Undecided,
)
from tasks.defect_report import write_defect_report
from tasks.progress import Step, log_progress, start_step
from tasks.redaction import Redaction
from warehouse.home import Home
from warehouse.stages import Stage

if TYPE_CHECKING:
    from prefect import State

    from ppdm.cli.outcome import ReleaseOutcome


@contextmanager
def write_defect_reports(home: Path) -> Iterator[None]:
    """Write a report into the home if a defect is raised inside."""
    try:
        with Redaction():
            yield
    except Defect as defect:
        raise write_defect_report(home, defect) from None


def preload_imports() -> None:
    """Import the slow libraries while the Prefect server starts."""
    log_progress("import Prefect (1 of 3)", 0.0)
    import flows.release
    from tasks.ingest import expectations
    from tasks.notify import mlflow_log

    log_progress("import Great Expectations (2 of 3)", 0.15)
    expectations.preload()
    log_progress("import MLflow (3 of 3)", 0.45)
    mlflow_log.preload()
    log_progress("wait for the Prefect server", 0.55)
    assert flows.release


@contextmanager
def disable_heartbeats() -> Iterator[None]:
    """Run flows without heartbeats: each would wait up to a second for its thread to end."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    with temporary_settings(set_defaults={PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield


def run_to_end(
    home: Path,
    run: Callable[[], State[Any]],
    interrupted: Interrupted,
    meanwhile: Callable[[], None] = preload_imports,
) -> State[Any]:
    """Run a flow against a Prefect server, and return its completed state.

    Raise the error that ended it, or ``interrupted`` after Ctrl-C. ``meanwhile`` runs while the
    server starts.
    """
    Home(home).create()
    stop_orphaned_server(home)
    start_step(Step.START)
    try:
        with (
            write_defect_reports(home),
            use_prefect_server(home, log_progress, meanwhile=meanwhile),
            disable_heartbeats(),
        ):
            state = run()
    except (KeyboardInterrupt, PpdmError) as error:
        if not is_interruption(error):
            raise
        raise interrupted from None
    if not state.is_completed():
        raise find_error(state)
    return state


def find_error(state: State[Any]) -> PpdmError:
    """Return the error that ended a flow run."""
    error = state.result(raise_on_failure=False)
    while not isinstance(error, PpdmError) and isinstance(error, BaseException):
        error = error.__cause__ or error.__context__
    if isinstance(error, PpdmError):
        return error
    return MachineTrouble(
        f"Prefect ended the run as {state.name}.", remedy="Run the same release again."
    )


def build_result(outcome: ReleaseOutcome) -> CommandResult:
    """Return the result of a release: a refused or undecided one has an error."""
    from ppdm.cli.panels import format_waiting, render_outcome
    from ppdm.cli.release_reply import build_release
    from ppdm.cli.replies.releases import ReleaseReply

    summary = outcome.summary
    error: PpdmError | None = None
    if summary.run.stage == Stage.REFUSED:
        command = f"ppdm show {summary.run.release_id} --all{format_home_of(summary)}"
        error = Refused(summary.refusals[0].text, remedy=f"See: {command}")
    elif summary.is_undecided:
        error = Undecided(summary.format_outcome_sentence(), remedy=format_waiting(summary)[0])
    return CommandResult(
        render_outcome(outcome),
        ReleaseReply(release=build_release(outcome)).as_payload(),
        exit_code=0 if error is None else error.exit_code,
        error=error,
    )
