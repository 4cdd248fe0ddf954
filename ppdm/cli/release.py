"""`ppdm release`: run the release flow against a Prefect server."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.config.context import build_context
from flows.config.release_file import ReleaseFile
from ppdm.cli.ctrl_c import is_interruption
from ppdm.cli.flow_runs import (
    build_result,
    disable_heartbeats,
    find_error,
    preload_imports,
    write_defect_reports,
)
from ppdm.cli.interruption import describe_interruption
from ppdm.cli.release_files import read_release_file
from ppdm.cli.result import CommandResult
from ppdm.services.prefect_server import stop_orphaned_server, use_prefect_server
from ppdm_core.model.errors import PpdmError
from tasks.context import ReleaseContext
from tasks.progress import Step, log_heading, log_progress, start_step
from tasks.signing_key import load_author_key
from warehouse.home import Home
from warehouse.stages import FINISHED, Stage

if TYPE_CHECKING:
    from prefect import State

    from ppdm.cli.outcome import ReleaseOutcome

UNFINISHED_STAGES = frozenset(Stage) - FINISHED - {Stage.AWAITING_REVIEW}


def release_file(
    path: Path, dry_run: bool, key: Path | None = None, passphrase: str | None = None
) -> CommandResult:
    """Run the release that a file describes, signed in a home with reviewers' keys."""
    return release_files([path], dry_run, key, passphrase)[0]


def release_files(
    paths: Sequence[Path],
    dry_run: bool,
    key: Path | None = None,
    passphrase: str | None = None,
) -> list[CommandResult]:
    """Run several releases one after the other against one Prefect server."""
    files = [read_release_file(path)[0] for path in paths]
    home = files[0].home()
    Home(home).create()
    load_author_key(home, key, passphrase)
    stop_orphaned_server(home)
    start_step(Step.START)
    results: list[CommandResult] = []
    try:
        with (
            write_defect_reports(home),
            use_prefect_server(home, log_progress, meanwhile=preload_imports),
        ):
            for number, file in enumerate(files, start=1):
                if len(files) > 1:
                    log_heading(f"release {number} of {len(files)}: {paths[number - 1].name}")
                results.append(run_release(file, dry_run))
    except (KeyboardInterrupt, PpdmError) as error:
        if not is_interruption(error):
            raise
        number = min(len(results), len(files) - 1)
        again = f"ppdm release {shlex.quote(str(paths[number]))}"
        raise describe_interruption(home, files[number].dataset.name, again) from None
    return results


def run_release(file: ReleaseFile, dry_run: bool) -> CommandResult:
    """Run the release flow once; raise the error that kept it from reaching a verdict."""
    from flows.release import release

    with disable_heartbeats():
        state = release(file, dry_run=dry_run, return_state=True)
    outcome = find_outcome(build_context(file), state)
    if outcome is None or outcome.summary.run.stage in {Stage.REJECTED, *UNFINISHED_STAGES}:
        raise find_error(state)
    return build_result(outcome)


def find_outcome(context: ReleaseContext, state: State[Any]) -> ReleaseOutcome | None:
    """Return how the run ended that this flow run made, or None if it made none.

    The warehouse is the record of how a run ended; the state of the flow run is not.
    """
    from ppdm.cli.outcome import read_outcome
    from warehouse.database import list_runs

    flow_run_id = str(state.state_details.flow_run_id)  # not the pid: containers reuse theirs
    with context.open_store().transaction("summary") as db:
        runs = [run for run in list_runs(db, context.dataset) if run.flow_run_id == flow_run_id]
        return read_outcome(db, runs[-1]) if runs else None
