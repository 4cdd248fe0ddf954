"""What the commands do, as plain functions that return an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.config.context import checked_plan, plan_of
from flows.config.release_file import ReleaseFile, load
from ppdm.cli.console import (
    checked_text,
    decide_command,
    outcome_text,
    show_command,
    show_text,
    status_text,
)
from ppdm.cli.progress import shown_progress
from ppdm.cli.result import Answer
from ppdm.services.prefect_server import prefect_server, reap_orphans
from ppdm_core.model.errors import BadInput, Defect, MachineTrouble, PpdmError, Refused, Undecided
from tasks.context import Plan
from tasks.defect_report import with_report
from tasks.environment import chosen_home
from tasks.progress import log_progress
from tasks.redaction import Shield
from warehouse.home import Home

if TYPE_CHECKING:
    from prefect import State

    from tasks.release_summary import Summary
    from warehouse.database import Store


def read_file(path: Path) -> tuple[ReleaseFile, Plan]:
    """A release file that is right in itself; nothing is written."""
    file = load(path)
    try:
        plan = checked_plan(file)
    except BadInput as error:
        raise BadInput(
            error.message, file=error.file or str(path), column=error.column, remedy=error.remedy
        ) from None
    if not Path(plan.source.path).exists():
        raise BadInput(
            f"The source {plan.source.path} does not exist.",
            file=str(path),
            remedy="Correct 'path' in [source]; relative paths start at the release file.",
        )
    return file, plan


def check_file(path: Path) -> Answer:
    from tasks.ingest.source_check import check_source

    _, plan = read_file(path)
    reap_orphans(Path(plan.home))
    with shown_progress():
        facts = check_source(plan)
    return Answer(checked_text(path, plan, facts), {"file": str(path), **facts})


def release_file(path: Path, dry_run: bool) -> Answer:
    return release_files([path], dry_run)[0]


def release_files(paths: Sequence[Path], dry_run: bool) -> list[Answer]:
    """Releases one after the other against one Prefect server."""
    files = [read_file(path)[0] for path in paths]
    home = files[0].home()
    Home(home).create()
    reap_orphans(home)
    with (
        reported(home),
        shown_progress(),
        prefect_server(home, log_progress, meanwhile=import_heavy),
    ):
        return [run_release(file, dry_run) for file in files]


@contextmanager
def reported(home: Path) -> Iterator[None]:
    """A defect leaves a report."""
    try:
        with Shield():
            yield
    except Defect as defect:
        raise with_report(home, defect) from None


def import_heavy() -> None:
    """The slow imports, while the server starts."""
    log_progress("starting: Prefect, MLflow, Great Expectations")
    import flows.release
    from tasks.ingest import expectations
    from tasks.notify import mlflow_log as tracking

    expectations.preload()
    tracking.preload()
    assert flows.release


@contextmanager
def without_heartbeats() -> Iterator[None]:
    """Each flow would wait up to a second for its heartbeat's thread to end."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    with temporary_settings(set_defaults={PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield


def run_release(file: ReleaseFile, dry_run: bool) -> Answer:
    from flows.release import release

    with without_heartbeats():
        state = release(file, dry_run=dry_run, return_state=True)
    summary = own_summary(plan_of(file), state)
    if summary is None or summary.run.stage in ("rejected", *UNFINISHED):
        raise failure_of(state)
    return outcome(summary)


UNFINISHED = ("created", "raw", "validated", "sanitized", "audited", "approved")


def own_summary(plan: Plan, state: State[Any]) -> Summary | None:
    """The run of this flow run; the warehouse, not Prefect, knows how it ended."""
    from tasks.release_summary import read_summary
    from warehouse.database import list_runs

    store = plan.store()
    own = str(state.state_details.flow_run_id)  # not the pid: containers reuse theirs
    with store.transaction("summary") as db:
        runs = [run for run in list_runs(db, plan.dataset) if run.flow_run_id == own]
    return read_summary(store, runs[-1].release_id) if runs else None


def failure_of(state: State[Any]) -> PpdmError:
    error = state.result(raise_on_failure=False)
    while not isinstance(error, PpdmError) and isinstance(error, BaseException):
        error = error.__cause__ or error.__context__
    if isinstance(error, PpdmError):
        return error
    return MachineTrouble(
        f"Prefect ended the run as {state.name}.", remedy="Run the same release again."
    )


def outcome(summary: Summary) -> Answer:
    error: PpdmError | None = None
    if summary.run.stage == "refused":
        error = Refused(summary.refusals[0].why, remedy=f"See: {show_command(summary)}")
    elif summary.is_undecided:
        error = Undecided(summary.closing(), remedy=decide_command(summary))
    return Answer(
        outcome_text(summary),
        {"release": summary.as_dict()},
        exit_code=0 if error is None else error.exit_code,
        error=error,
    )


def open_home(home: Path | None) -> Store:
    from warehouse.database import Store

    root = chosen_home(home)
    if not Home(root).database.exists():
        raise BadInput(
            f"There is no warehouse in {root}.",
            file=str(root),
            remedy="Name it with --home or PPDM_HOME; a release makes one.",
        )
    reap_orphans(root)
    return Store(Home(root), say=log_progress)


def list_status(home: Path | None) -> Answer:
    from warehouse.database import list_runs

    store = open_home(home)
    with shown_progress(), store.transaction("status") as db:
        runs = list_runs(db)
    rows = [
        {"release_id": r.release_id, "stage": r.stage, "started": r.started.isoformat()}
        for r in runs
    ]
    return Answer(status_text(runs), {"runs": rows})


def show_release(release_id: str, home: Path | None) -> Answer:
    from tasks.release_summary import read_summary

    summary = read_summary(open_home(home), release_id)
    return Answer(show_text(summary), {"release": summary.as_dict()})


def backup(dataset: str, out: Path, home: Path | None) -> Answer:
    from tasks.keys import backup_key

    fingerprint = backup_key(open_home(home), dataset, out)
    name = dataset or "this home"
    text = f"The key of {name} ({fingerprint}) is in {out}. Keep that file off this machine."
    return Answer(text, {"dataset": dataset, "fingerprint": fingerprint})


def restore(file: Path, home: Path | None) -> Answer:
    from tasks.keys import restore_key

    dataset = restore_key(open_home(home), file)
    return Answer(f"The key of {dataset or 'this home'} is in place.", {"dataset": dataset})
