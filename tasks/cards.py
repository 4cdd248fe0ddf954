"""The card of a release, and what a run shows in Prefect (the only import of its artifacts)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ppdm_core.errors import BadInput, PpdmError
from ppdm_core.metrics import METRICS
from ppdm_core.types import AuditReport, Score
from tasks.plan import Plan
from tasks.summary import Summary

if TYPE_CHECKING:
    from uuid import UUID

MOMENT = 1.0  # seconds
EVENTS = {
    "published": "approved",
    "unchanged": "unchanged",
    "refused": "refused",
    "rejected": "refused",
    "failed": "failed",
}
NOT_PROTECTED = (
    "Labels are released as they are; what follows from the label alone is not hidden.",
    "It is not hidden that a record is in the release, when it changed, and which of its versions "
    "are equal.",
    "Only the attacks named here were played. An attacker who knows more can do more.",
)


def card_text(plan: Plan, summary: Summary) -> str:
    """Markdown for recipients and stewards; the same facts as the manifest, in words."""
    lines = [f"# {plan.dataset}, release {summary.run.release_id}", ""]
    lines += [f"For {plan.audience}, by {plan.owner}.", ""]
    lines += made_how(plan, summary)
    lines += promised(summary)
    lines += measured(summary)
    lines += ["## What is not protected", "", *(f"- {line}" for line in NOT_PROTECTED), ""]
    return "\n".join(lines)


def made_how(plan: Plan, summary: Summary) -> list[str]:
    facts = summary.sanitized or {}
    label = f" and the label `{plan.label.name}`" if plan.label else ""
    public = facts.get("public", {})
    answered = [response["column"]["name"] for response in public.get("responses", [])]
    columns = [*public.get("columns", []), *answered]
    named = f"`{columns[0]}` to `{columns[-1]}`" if len(columns) > 1 else f"`{columns[0]}`"
    lines = [
        "## How it was made",
        "",
        f"Method `{summary.method}`: {facts.get('released', 0):,} records, columns {named}{label}.",
        "The map, the noise and the scaling that a recipient needs are in `manifest.json`.",
    ]
    if answered:
        lines.append(
            "Categories are random answers: count them with the gamma of their column, by "
            "`estimate_frequencies`. Of the attacks below, linkage and inference read them."
        )
    if facts.get("set_aside"):
        lines.append("Records set aside to fit the basis are in no release.")
    if facts.get("counts", {}).get("clipped scores"):
        lines.append("Component scores beyond their range were moved to its end.")
    return [*lines, ""]


def promised(summary: Summary) -> list[str]:
    guarantee = summary.guarantee
    if guarantee is None:
        return []
    lines = ["## What is promised", ""]
    if guarantee.kind == "empirical":
        lines.append("No worst-case bound: only what the attacks below measured.")
    else:
        lines += [
            "One released row changes the odds of any statement at most by the factor gamma:",
            "",
            "| about | gamma |",
            "| --- | --- |",
            *(f"| one {name} | {gamma} |" for name, gamma in summary.gammas().items()),
        ]
    return [*lines, "", *(f"- {line}" for line in guarantee.assumptions), ""]


def measured(summary: Summary) -> list[str]:
    report = summary.report
    if report is None:
        return []
    gates = summary.verdict.findings if summary.verdict else ()
    return [
        *attackers(report),
        *recipients(report, {finding.check for finding in gates}),
    ]


def attackers(report: AuditReport) -> list[str]:
    scores = [score for score in report.scores if score.kind == "privacy"]
    lines = ["## What attackers got", ""]
    lines += ["Measured on other draws of the same noise than the released one.", ""]
    lines += ["| score | value | interval | without the release | worst tenth of records |"]
    lines += ["| --- | --- | --- | --- | --- |", *map(score_row, scores), ""]
    lines += [f"- {score.sentence}" for score in scores if score.sentence]
    lines += [
        f"- Without knowing the others, the attacker of `{score.name}` computes a rate of "
        f"{score.expected:.3g} for itself."
        for score in scores
        if score.expected is not None
    ]
    lines += [
        f"- On the tenth of records that it is surest of, `{score.name}` is {score.victims:.3g}."
        for score in scores
        if score.victims is not None
    ]
    lines += [
        f"- `{score.name}` is worst for {score.group}: {score.worst_group:.3g}."
        for score in scores
        if score.worst_group is not None
    ]
    lines += noted(scores)
    return [*lines, *absent(report, "privacy"), ""]


def recipients(report: AuditReport, judged: set[str]) -> list[str]:
    """A line each; sentences only for what a limit judges."""
    scores = {score.name: score for score in report.scores if score.kind == "utility"}
    lines = ["## What recipients get", ""]
    lines += ["Measured on the same draws. `lost` is what the original table gives more.", ""]
    lines += [
        "| score | what it is | better | value | interval | original | lost | without the release |"
    ]
    lines += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
    lines += [
        use_row(score, scores.get(f"{name}.deterioration"))
        for name, score in scores.items()
        if "." not in name
    ]
    lines.append("")
    lines += [f"- {score.sentence}" for name, score in scores.items() if name in judged]
    lines += noted(list(scores.values()))
    return [*lines, *absent(report, "utility"), ""]


def noted(scores: Sequence[Score]) -> list[str]:
    """What an attack or a metric can tell of its own work."""
    found = []
    for score in scores:
        notes = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in score.notes.items()]
        if score.candidate in METRICS:
            notes.append(f"that of `{score.candidate}`")
        found += [f"- `{score.name}`: {', '.join(notes)}."] if notes else []
    return found


def absent(report: AuditReport, kind: str) -> list[str]:
    """What there is no score of, and why."""
    lines = [f"- `{name}` does not apply. {why}" for name, why in of_kind(kind, report.skipped)]
    lines += [
        f"- `{name}` was not run." for name, _ in of_kind(kind, dict.fromkeys(report.not_run, ""))
    ]
    return lines + [f"- `{name}` failed ({why})." for name, why in of_kind(kind, report.failed)]


def of_kind(kind: str, named: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, why in named.items():
        if (METRICS[name].kind if name in METRICS else "privacy") == kind:
            yield name, why


def score_row(score: Score) -> str:
    worst = "" if score.worst_decile is None else f"{score.worst_decile:.3g}"
    return (
        f"| {score.name} | {score.value:.3g} | {score.low:.3g} to {score.high:.3g} "
        f"| {score.baseline:.3g} | {worst} |"
    )


def use_row(score: Score, change: Score | None) -> str:
    metric = METRICS[score.name]
    original = "" if score.original is None else f"{score.original:.3g}"
    lost = "" if change is None else f"{change.value:.3g} ({change.low:.3g} to {change.high:.3g})"
    return (
        f"| {score.name} | {metric.describe} | {'higher' if metric.better == 'up' else 'lower'} "
        f"| {score.value:.3g} | {score.low:.3g} to {score.high:.3g} | {original} | {lost} "
        f"| {score.baseline:.3g} |"
    )


def verdict_rows(summary: Summary) -> list[dict[str, str]]:
    return [
        {
            "check": finding.check,
            "outcome": finding.outcome,
            "observed": finding.observed,
            "limit": finding.limit,
            "why": finding.why,
        }
        for finding in (summary.verdict.findings if summary.verdict else ())
    ]


def show_release(plan: Plan, summary: Summary, page: str | None) -> None:
    """Name, tags, artifacts and event of a run at its end; ``page`` is its one in MLflow."""
    from prefect.artifacts import create_link_artifact, create_markdown_artifact

    run = summary.run
    show_verdict(plan.dataset, verdict_rows(summary), summary.closing())
    create_markdown_artifact(
        key=artifact_key(plan.dataset, "card"),
        markdown=card_text(plan, summary),
        description="The release's card.",
    )
    if page:
        create_link_artifact(
            key=artifact_key(plan.dataset, "mlflow"),
            link=page,
            link_text="Its figures in MLflow",
            description="Its figures in MLflow, to compare with other releases.",
        )
    name_run(plan.dataset, plan.method, run.stage, run.release_id)
    emit(plan.dataset, plan.method, run.stage, run.release_id, summary.closing())


def show_rejection(dataset: str, method: str, error: BadInput) -> None:
    why = f"{error} Nothing was published; `latest` stays as it was."
    row = {"check": "input", "outcome": "FAIL", "observed": "", "limit": "", "why": str(error)}
    show_verdict(dataset, [row], why)
    name_run(dataset, method, "rejected", dataset)
    emit(dataset, method, "rejected", dataset, why)


def show_failure(dataset: str, method: str, error: PpdmError) -> None:
    """The machine or we failed; perhaps also Prefect, which is then not asked twice."""
    import httpx

    emit(dataset, method, "failed", dataset, str(error))
    with suppress(httpx.HTTPError):
        name_run(dataset, method, "failed", dataset)


def show_verdict(dataset: str, rows: list[dict[str, str]], closing: str) -> None:
    from prefect.artifacts import create_table_artifact

    create_table_artifact(
        key=artifact_key(dataset, "verdict"), table=rows, description=f"{closing} Every check:"
    )


class Bar:
    """A progress bar on the run's page, for work that takes longer than a moment."""

    def __init__(self, dataset: str) -> None:
        self.key = artifact_key(dataset, "audit")
        self.artifact: UUID | None = None
        self.told = time.monotonic()

    def show(self, share: float) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        if time.monotonic() - self.told < MOMENT and not (self.artifact and share == 1):
            return
        if self.artifact is None:
            self.artifact = create_progress_artifact(  # type: ignore[assignment]
                progress=100 * share, key=self.key, description="Attacks played."
            )
        else:
            update_progress_artifact(artifact_id=self.artifact, progress=100 * share)
        self.told = time.monotonic()


def artifact_key(dataset: str, what: str) -> str:
    return f"{dataset}-{what}".replace("_", "-")


def name_run(dataset: str, method: str, stage: str, subject: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.runtime import flow_run

    tags = [*flow_run.tags, f"dataset:{dataset}", f"method:{method}", f"outcome:{stage}"]
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, name=f"{subject} {method} {stage}", tags=set(tags))


def emit(dataset: str, method: str, stage: str, subject: str, message: str) -> None:
    """An event that automations can wait for; a dry run is nobody's business."""
    from prefect.events import emit_event

    if stage not in EVENTS:
        return
    emit_event(
        event=f"ppdm.release.{EVENTS[stage]}",
        resource={
            "prefect.resource.id": f"ppdm.dataset.{dataset}",
            "prefect.resource.name": dataset,
            "ppdm.method": method,
        },
        payload={"release": subject, "method": method, "outcome": stage, "message": message},
    )
