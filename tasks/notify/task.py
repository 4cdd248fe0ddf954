"""The steps that log a release to MLflow and Prefect, which are views of the warehouse."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import PpdmError
from tasks.context import ReleaseContext
from tasks.notify.mlflow_addresses import find_pages
from tasks.notify.mlflow_entry import ReleaseEntry
from tasks.notify.mlflow_log import log_to_mlflow
from tasks.notify.prefect_artifacts import show_rejection, show_release
from tasks.progress import Step, log_progress, start_step
from tasks.publish.card import find_card
from tasks.publish.report.build import build_view
from tasks.publish.report.facts import collect_report_facts
from tasks.publish.report.render import render_report
from tasks.redaction import redact_errors
from tasks.release_summary import Summary, summarize_run
from warehouse.checkpoints import checkpoint
from warehouse.database import get_run
from warehouse.runs import drop_old_tables, remove_files
from warehouse.stages import Stage


@task(name="log release", task_run_name="log {release_id}", cache_policy=NO_CACHE)
@redact_errors
def log_release(context: ReleaseContext, release_id: str) -> str:
    """Log a release that ended, and return its outcome in words.

    The release does not depend on it: MLflow may be out of reach.
    """
    start_step(Step.LOG)
    store = context.open_store()
    with store.transaction(release_id) as db:
        summary = summarize_run(db, get_run(db, release_id))
        facts = collect_report_facts(db, summary)
        ended = drop_old_tables(db, context.dataset, context.keep_raw)
    judged = summary.judged
    view = build_view(facts, "steward")
    card = find_card(summary, view)
    entry = ReleaseEntry(
        dataset=context.dataset,
        number=summary.run.number,
        release_id=release_id,
        started=summary.run.started,
        outcome=summary.run.stage,
        outcome_sentence=summary.format_outcome_sentence(),
        method=context.method,
        parameters=context.parameters,
        policy=context.policy,
        verdict=judged.verdict,
        scores=judged.report.scores,
        guarantee=judged.sanitized.guarantee,
        code_version=summary.run.code_version,
        flow_run_id=summary.run.flow_run_id,
        card=card,
        report=render_report(view),
    )
    logged = log_to_mlflow(Path(context.home), entry, log_progress)
    if logged is None:
        log_progress("MLflow could not be reached; the release does not depend on it")
    pages = find_pages(Path(context.home), logged) if logged else None
    show_release(context, summary, card, pages)
    checkpoint("release logged")
    remove_files(store.home, context.dataset, ended)
    return format_message(summary)


def format_message(summary: Summary) -> str:
    """Return the outcome for the last state of the flow run, with the command of a reviewer."""
    outcome = summary.format_outcome_sentence()
    if summary.run.stage != Stage.AWAITING_REVIEW:
        return outcome
    next_step = summary.run.stage.next_step.format(release_id=summary.run.release_id)
    return f"WAITS FOR REVIEW. {outcome} {next_step}"


@task(name="log rejection", task_run_name="log rejection", cache_policy=NO_CACHE)
@redact_errors
def log_rejection(dataset: str, method: str, error: PpdmError) -> None:
    """Show bad input in Prefect, as refusals are: a scheduled run has no console."""
    show_rejection(dataset, method, error)
