"""What a run shows in Prefect: artifacts, run name, tags and events."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ppdm_core.model.errors import PpdmError
from ppdm_core.model.shown_text import Markdown, escape_markdown, format_code
from tasks.context import ReleaseContext
from tasks.publish.report.outcome import describe_stage
from tasks.release_summary import Summary
from warehouse.stages import Stage

if TYPE_CHECKING:
    from uuid import UUID

    from tasks.notify.mlflow_addresses import RunPages

MIN_PROGRESS_INTERVAL = 1.0  # seconds
FAILED = "failed"  # not a stage: the machine or this program failed
WAITS = "WAITS"  # tag of a run that a person must decide about
FAILED_EVENT = "ppdm.release.failed"
UNCHANGED = "Nothing was published; `latest` stays as it was."


def list_findings(summary: Summary) -> list[dict[str, str]]:
    """Return the findings of a verdict as rows of a table, failures first.

    Cells are shown as Markdown on one line, and cut at the edge of the page: sentences are in the
    description.
    """
    if summary.verdict is None:
        return []
    failures = summary.verdict.failures
    passed = [finding for finding in summary.verdict.findings if finding.outcome == "PASS"]
    limits = summary.settings.policy.limits if summary.settings else {}
    return [
        {
            "outcome": finding.outcome,
            "check": escape_markdown(finding.check),
            "observed": escape_markdown(finding.observed),
            "limit": escape_markdown(finding.limit),
            "set by": escape_markdown(limits[finding.check].set_by)
            if finding.check in limits
            else "",
        }
        for finding in (*failures, *passed)
    ]


def describe_verdict(summary: Summary) -> Markdown:
    """Return the outcome, why each check did not pass, and what to do next, as Markdown."""
    run = summary.run
    parts: list[str] = [escape_markdown(summary.format_outcome_sentence())]
    if summary.verdict and summary.verdict.failures:
        lines = (
            f"- {finding.outcome} {format_code(finding.check)}: {escape_markdown(finding.text)}"
            for finding in summary.verdict.failures
        )
        parts.append("\n".join(lines))
    if run.stage == Stage.AWAITING_REVIEW:
        parts.append(escape_markdown(run.stage.next_step.format(release_id=run.release_id)))
    parts.append(f"The report: {format_code(f'ppdm report {run.release_id} --open')}")
    return Markdown("\n\n".join(parts))


def show_release(
    context: ReleaseContext, summary: Summary, card: str, pages: RunPages | None
) -> None:
    """Set name, tags, artifacts and event of a run at its end; ``pages`` are its ones in MLflow."""
    from prefect.artifacts import create_link_artifact, create_markdown_artifact

    run, outcome = summary.run, summary.format_outcome_sentence()
    ending, _ = describe_stage(run.stage)
    show_verdict(context.dataset, list_findings(summary), describe_verdict(summary))
    create_markdown_artifact(
        key=artifact_key(context.dataset, "card"),
        markdown=card,
        description=f"{run.release_id} on one page: {ending}.",
    )
    if pages:
        create_link_artifact(
            key=artifact_key(context.dataset, "report"),
            link=pages.report,
            link_text=f"The report of {run.release_id}",
            description=f"The report of {run.release_id}, with pictures: why it ended as {ending}.",
        )
        create_link_artifact(
            key=artifact_key(context.dataset, "mlflow"),
            link=pages.run,
            link_text="Its figures in MLflow",
            description=f"All figures of {run.release_id}, to compare with other releases.",
        )
    name_run(context.dataset, context.method, run.stage, run.release_id)
    if run.stage.event:
        event = run.stage.event
        emit(event, context.dataset, context.method, run.stage, run.release_id, outcome)


def show_rejection(dataset: str, method: str, error: PpdmError) -> None:
    """Show that bad input ended a run."""
    why, shown = f"{error} {UNCHANGED}", escape_markdown(str(error))
    row = {"outcome": "FAIL", "check": "input"}
    show_verdict(dataset, [row], Markdown(f"{shown} {UNCHANGED}"))
    name_run(dataset, method, Stage.REJECTED, dataset)
    assert Stage.REJECTED.event is not None
    emit(Stage.REJECTED.event, dataset, method, Stage.REJECTED, dataset, why)


def show_failure(dataset: str, method: str, error: PpdmError) -> None:
    """Show that the machine or this program failed.

    If Prefect itself fails, it is not asked again.
    """
    import httpx

    emit(FAILED_EVENT, dataset, method, FAILED, dataset, str(error))
    with suppress(httpx.HTTPError):
        name_run(dataset, method, FAILED, dataset)


def show_verdict(dataset: str, rows: list[dict[str, str]], description: Markdown) -> None:
    """Show every check of a verdict in a table, below a description."""
    from prefect.artifacts import create_table_artifact

    create_table_artifact(
        key=artifact_key(dataset, "verdict"),
        table=rows,
        description=description,
    )


class ProgressBar:
    """A progress bar on the run's page, for work that takes longer than a second."""

    def __init__(
        self, dataset: str, what: str = "audit", description: str = "Attacks run."
    ) -> None:
        self.key = artifact_key(dataset, what)
        self.description = description
        self.artifact: UUID | None = None
        self.shown_at = time.monotonic()

    def show(self, share: float) -> None:
        """Show the share of the work that is done."""
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        if time.monotonic() - self.shown_at < MIN_PROGRESS_INTERVAL and not (
            self.artifact and share == 1
        ):
            return
        if self.artifact is None:
            self.artifact = create_progress_artifact(  # type: ignore[assignment]
                progress=100 * share, key=self.key, description=self.description
            )
        else:
            update_progress_artifact(artifact_id=self.artifact, progress=100 * share)
        self.shown_at = time.monotonic()


def artifact_key(dataset: str, what: str) -> str:
    """Return the key of an artifact, which may hold no underscore."""
    return f"{dataset}-{what}".replace("_", "-")


def name_run(dataset: str, method: str, outcome: Stage | str, subject: str) -> None:
    """Set name and tags of the current flow run."""
    from prefect.client.orchestration import get_client
    from prefect.runtime import flow_run

    tags = [*flow_run.tags, f"dataset:{dataset}", f"method:{method}", f"outcome:{outcome}"]
    ending = describe_stage(outcome)[0] if isinstance(outcome, Stage) else outcome.upper()
    if outcome == Stage.AWAITING_REVIEW:
        tags.append(WAITS)
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, name=f"{subject} {ending} {method}", tags=set(tags))


def emit(event: str, dataset: str, method: str, outcome: str, subject: str, message: str) -> None:
    """Emit an event that automations can wait for."""
    from prefect.events import emit_event

    emit_event(
        event=event,
        resource={
            "prefect.resource.id": f"ppdm.dataset.{dataset}",
            "prefect.resource.name": dataset,
            "ppdm.method": method,
        },
        payload={"release": subject, "method": method, "outcome": outcome, "message": message},
    )
