"""`ppdm status`: list the runs of a home, and what each of them needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.cli.console import (
    VERDICT_STYLES,
    format_home_option,
    is_terminal,
    make_grid,
    make_text,
)
from ppdm.cli.home import open_home
from ppdm.cli.result import CommandResult
from warehouse.stages import FINISHED, Stage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ppdm.cli.replies.releases import RunBody
    from tasks.release_summary import Summary
    from warehouse.database import Run
    from warehouse.transaction import Transaction

STACKED_TITLES = ("release", "outcome", "why and what next")
TITLES = ("release", "started", "stage", "method", "verdict", "why and what next")


def list_status(
    home: Path | None, dataset: str | None = None, waiting: bool = False
) -> CommandResult:
    """Return the runs of a home, or of a dataset, or those that await a decision."""
    from ppdm.cli.replies.releases import StatusReply
    from warehouse.database import list_runs
    from warehouse.runs import list_datasets

    option = format_home_option(home)
    with open_home(home).transaction("status") as db:
        if dataset is not None:
            check_dataset(dataset, list_datasets(db))
        runs = [
            describe_run(db, run, option)
            for run in list_runs(db, dataset)
            if not waiting or run.stage == Stage.AWAITING_REVIEW
        ]
    return CommandResult(render_runs(runs, waiting), StatusReply(runs=runs).as_payload())


def check_dataset(dataset: str, known: Sequence[str]) -> None:
    """Raise BadInput if a home has no such dataset."""
    from ppdm_core.model.errors import BadInput
    from ppdm_core.settings.errors import suggest_name

    if dataset not in known:
        raise BadInput(
            f"There is no dataset '{dataset}' here.", remedy=suggest_name(dataset, known)
        )


def describe_run(db: Transaction, run: Run, home_option: str) -> RunBody:
    """Return one run with its verdict, the first reason against it, and the next step."""
    from ppdm.cli.replies.releases import RunBody
    from tasks.release_summary import summarize_run

    summary = summarize_run(db, run)
    step = run.stage.next_step.format(release_id=run.release_id)
    return RunBody(
        release_id=run.release_id,
        dataset=run.dataset,
        stage=run.stage,
        started=run.started.isoformat(timespec="minutes"),
        method=summary.sanitized.method if summary.sanitized else None,
        verdict=summary.verdict.outcome if summary.verdict else None,
        reason=find_reason(summary),
        next_step=f"{step}{home_option}" if "{release_id}" in run.stage.next_step else step,
    )


def find_reason(summary: Summary) -> str | None:
    """Return why a release was withdrawn, or the first finding against it; None if all is well."""
    if summary.withdrawal is not None:
        return f"It {summary.withdrawal.words}"
    return summary.refusals[0].text if summary.refusals else None


def render_runs(runs: Sequence[RunBody], waiting: bool) -> RenderableType:
    """Return one row for each run."""
    if not runs:
        return "No release awaits a decision." if waiting else "No release yet."
    if not is_terminal():
        return make_grid(map(list_cells, runs), TITLES)
    return make_grid(map(list_stacked_cells, runs), STACKED_TITLES)


def list_cells(run: RunBody) -> tuple[RenderableType, ...]:
    """Return the cells of one run."""
    verdict = make_text(run.verdict or "-", VERDICT_STYLES.get(run.verdict or "", ""))
    day = run.started.replace("T", " ")[:16]
    return run.release_id, day, run.stage, run.method or "-", verdict, " ".join(list_words(run))


def list_stacked_cells(run: RunBody) -> tuple[RenderableType, ...]:
    """Return the same in three cells of several lines, for the width of a terminal."""
    from rich.console import Group

    release_id, day, stage, method, verdict, _ = list_cells(run)
    words = Group(*list_words(run), "")
    return Group(release_id, day), Group(stage, method, verdict), words


def list_words(run: RunBody) -> Iterator[str]:
    """Yield the reason and the next step; a run that ended well needs neither."""
    if run.reason and run.stage != Stage.PUBLISHED:
        yield run.reason
    if run.stage not in FINISHED or run.stage == Stage.REFUSED:
        yield run.next_step
