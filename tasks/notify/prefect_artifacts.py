"""What a run shows in Prefect: artifacts, run name, tags and events."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, PpdmError
from ppdm_core.model.shown_text import Markdown, escape_markdown
from tasks.context import ReleaseContext
from tasks.release_summary import Summary
from warehouse.stages import Stage

if TYPE_CHECKING:
    from uuid import UUID

MIN_PROGRESS_INTERVAL = 1.0  # seconds
FAILED = "failed"  # not a stage: the machine or this program failed
FAILED_EVENT = "ppdm.release.failed"
UNCHANGED = "Nothing was published; `latest` stays as it was."


def list_findings(summary: Summary) -> list[dict[str, str]]:
    """Return the findings of a verdict as rows of a table, whose cells are shown as Markdown."""
    return [
        {
            "check": escape_markdown(finding.check),
            "outcome": finding.outcome,
            "observed": escape_markdown(finding.observed),
            "limit": escape_markdown(finding.limit),
            "why": escape_markdown(finding.why),
        }
        for finding in (summary.verdict.findings if summary.verdict else ())
    ]


def show_release(context: ReleaseContext, summary: Summary, card: str, page: str | None) -> None:
    """Set name, tags, artifacts and event of a run at its end; ``page`` is its one in MLflow."""
    from prefect.artifacts import create_link_artifact, create_markdown_artifact

    run, outcome = summary.run, summary.format_outcome_sentence()
    show_verdict(context.dataset, list_findings(summary), outcome)
    create_markdown_artifact(
        key=artifact_key(context.dataset, "card"),
        markdown=card,
        description="The release's card.",
    )
    if page:
        create_link_artifact(
            key=artifact_key(context.dataset, "mlflow"),
            link=page,
            link_text="Its figures in MLflow",
            description="Its figures in MLflow, to compare with other releases.",
        )
    name_run(context.dataset, context.method, run.stage, run.release_id)
    if run.stage.event:
        event = run.stage.event
        emit(event, context.dataset, context.method, run.stage, run.release_id, outcome)


def show_rejection(dataset: str, method: str, error: BadInput) -> None:
    """Show that bad input ended a run."""
    why, shown = f"{error} {UNCHANGED}", escape_markdown(str(error))
    row = {"check": "input", "outcome": "FAIL", "observed": "", "limit": "", "why": shown}
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


def show_verdict(dataset: str, rows: list[dict[str, str]], outcome: str) -> None:
    """Show every check of a verdict in a table."""
    from prefect.artifacts import create_table_artifact

    create_table_artifact(
        key=artifact_key(dataset, "verdict"),
        table=rows,
        description=f"{escape_markdown(outcome)} Every check:",
    )


class ProgressBar:
    """A progress bar on the run's page, for work that takes longer than a second."""

    def __init__(self, dataset: str) -> None:
        self.key = artifact_key(dataset, "audit")
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
                progress=100 * share, key=self.key, description="Attacks run."
            )
        else:
            update_progress_artifact(artifact_id=self.artifact, progress=100 * share)
        self.shown_at = time.monotonic()


def artifact_key(dataset: str, what: str) -> str:
    """Return the key of an artifact, which may hold no underscore."""
    return f"{dataset}-{what}".replace("_", "-")


def name_run(dataset: str, method: str, outcome: str, subject: str) -> None:
    """Set name and tags of the current flow run."""
    from prefect.client.orchestration import get_client
    from prefect.runtime import flow_run

    tags = [*flow_run.tags, f"dataset:{dataset}", f"method:{method}", f"outcome:{outcome}"]
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, name=f"{subject} {method} {outcome}", tags=set(tags))


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
