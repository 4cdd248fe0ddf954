"""The card of a release, and what a run shows in Prefect (the only import of its artifacts)."""

from __future__ import annotations

from ppdm_core.types import Score
from tasks.plan import Plan
from tasks.summary import Summary

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
    columns = facts.get("public", {}).get("columns", [])
    named = f"`{columns[0]}` to `{columns[-1]}`" if len(columns) > 1 else f"`{columns[0]}`"
    lines = [
        "## How it was made",
        "",
        f"Method `{summary.method}`: {facts.get('released', 0):,} records, columns {named}{label}.",
        "The map, the noise and the scaling that a recipient needs are in `manifest.json`.",
    ]
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
    lines = ["## What attackers got, and what recipients get", ""]
    lines += ["Measured on other draws of the same noise than the released one.", ""]
    lines += ["| score | value | interval | without the release | worst tenth of records |"]
    lines += ["| --- | --- | --- | --- | --- |", *map(score_row, report.scores), ""]
    lines += [f"- {score.sentence}" for score in report.scores if score.sentence]
    lines += [
        f"- Without knowing the others, the attacker of `{score.name}` computes a rate of "
        f"{score.expected:.3g} for itself."
        for score in report.scores
        if score.expected is not None
    ]
    lines += [f"- `{name}` does not apply. {why}" for name, why in report.skipped.items()]
    lines += [f"- `{name}` failed ({kind})." for name, kind in report.failed.items()]
    return [*lines, ""]


def score_row(score: Score) -> str:
    worst = "" if score.worst_decile is None else f"{score.worst_decile:.3g}"
    return (
        f"| {score.name} | {score.value:.3g} | {score.low:.3g} to {score.high:.3g} "
        f"| {score.baseline:.3g} | {worst} |"
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


def show_in_prefect(plan: Plan, summary: Summary) -> None:
    from prefect.artifacts import create_markdown_artifact, create_table_artifact

    key = plan.dataset.replace("_", "-")
    create_table_artifact(
        key=f"{key}-verdict", table=verdict_rows(summary), description="Every check of the gate."
    )
    create_markdown_artifact(
        key=f"{key}-card", markdown=card_text(plan, summary), description="The release's card."
    )
