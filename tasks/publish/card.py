"""The card of a release: what recipients and stewards read about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from ppdm_core.audit.disclosure_rounding import round_report
from ppdm_core.metrics import METRICS
from ppdm_core.metrics.deterioration import Deterioration
from ppdm_core.model.score import AuditReport, Score
from tasks.context import ReleaseContext
from tasks.release_summary import Summary

BANDS = (
    "Figures are rounded to the unfavourable side of their band (0, 1, 2, 5, 10, 15, ... 100 %): "
    "for a risk, 5 % stands for anything above 2 % and up to 5 %."
)
NOT_PROTECTED = (
    "Labels are released as they are; what follows from the label alone is not hidden.",
    "It is not hidden that a record is in the release, when it changed, and which of its versions "
    "are equal.",
    "Only the attacks named here were run. An attacker who knows more can do more.",
)


T = TypeVar("T")


def format_card(context: ReleaseContext, summary: Summary) -> str:
    """Return the card as Markdown; it holds the same facts as the manifest, in words."""
    lines = [f"# {context.dataset}, release {summary.run.release_id}", ""]
    lines += [f"For {context.audience}, by {context.owner}.", ""]
    lines += format_method(context, summary)
    lines += format_guarantee(summary)
    lines += format_scores(context, summary)
    lines += format_decision(summary)
    lines += ["## What is not protected", "", *(f"- {line}" for line in NOT_PROTECTED), ""]
    return "\n".join(lines)


def format_method(context: ReleaseContext, summary: Summary) -> list[str]:
    """Return the lines on the method."""
    facts = summary.judged.sanitized
    label = f" and the label `{context.label.name}`" if context.label else ""
    columns = facts.public.names
    named = f"`{columns[0]}` to `{columns[-1]}`" if len(columns) > 1 else f"`{columns[0]}`"
    lines = [
        "## How it was made",
        "",
        f"Method `{summary.method}`: {facts.released:,} records, columns {named}{label}.",
        "The map, the noise and the scaling that a recipient needs are in `manifest.json`.",
    ]
    if facts.public.responses:
        lines.append(
            "Categories are random answers: count them with the gamma of their column, by "
            "`estimate_frequencies`. Of the attacks below, linkage and inference read them."
        )
    if facts.set_aside:
        lines.append("Records set aside to fit the basis are in no release.")
    if facts.counts.get("clipped scores"):
        lines.append("Component scores beyond their range were moved to its end.")
    return [*lines, ""]


def format_guarantee(summary: Summary) -> list[str]:
    """Return the lines on the guarantee."""
    guarantee = summary.judged.sanitized.guarantee
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
    return [
        *lines,
        "",
        *(f"- {line}" for line in guarantee.assumptions),
        *(f"- {line}" for line in [format_ledger(summary)] if line),
        "",
    ]


def format_ledger(summary: Summary) -> str:
    """Return the lines on the ledger."""
    if summary.ledger is None:
        return ""
    draws = summary.ledger.get("draws")
    more = f" Rows of it that were drawn without a bound: up to {draws:,}." if draws else ""
    audience = " to this audience" if summary.ledger.get("collusion_waiver") else ""
    return (
        f"All releases{audience} so far, for the record that was redrawn most often: "
        f"gamma {summary.ledger['gamma_so_far']}.{more}"
    )


def format_decision(summary: Summary) -> list[str]:
    """Return who approved a REVIEW and which checks; the notes are not for outsiders."""
    verdict = summary.judged.verdict
    if verdict.outcome != "REVIEW":
        return []
    lines = ["## What reviewers decided", "", "The gate could not decide these checks:", ""]
    lines += [f"- `{finding.check}`" for finding in verdict.failures]
    names = [f"{one['name'] or one['by']} on {one['at']}" for one in summary.approvals or ()]
    by = f"Approved by {', '.join(names)}." if names else "It has no approval."
    return [*lines, "", by, ""]


def format_scores(context: ReleaseContext, summary: Summary) -> list[str]:
    """Return the lines on all scores."""
    judged = summary.judged
    report = round_report(judged.report, context.policy.attacker.epsilon)
    checks = {finding.check for finding in judged.verdict.findings}
    return [*format_attacks(report), *format_utility(report, checks)]


def format_attacks(report: AuditReport) -> list[str]:
    """Return the lines on the attacks."""
    scores = [score for score in report.scores if score.kind == "privacy"]
    lines = ["## What attackers got", ""]
    lines += ["Measured on other draws of the same noise than the released one.", BANDS, ""]
    lines += ["| score | value | interval | without the release | worst tenth of records |"]
    lines += ["| --- | --- | --- | --- | --- |", *map(format_score_row, scores), ""]
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
    lines += format_notes(scores)
    return [*lines, *format_missing(report, "privacy"), ""]


def format_utility(report: AuditReport, judged: set[str]) -> list[str]:
    """Return one line for each score, and sentences only for those that a limit judges."""
    scores = {score.name: score for score in report.scores if score.kind == "utility"}
    lines = ["## What recipients get", ""]
    lines += ["Measured on the same draws. `lost` is what the original table gives more.", ""]
    lines += [
        "| score | what it is | better | value | interval | original | lost | without the release |"
    ]
    lines += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
    lines += [
        format_utility_row(score, scores.get(f"{name}.{Deterioration.name}"))
        for name, score in scores.items()
        if "." not in name
    ]
    lines.append("")
    lines += [f"- {score.sentence}" for name, score in scores.items() if name in judged]
    lines += format_notes(list(scores.values()))
    return [*lines, *format_missing(report, "utility"), ""]


def format_notes(scores: Sequence[Score]) -> list[str]:
    """Return the details that attacks and metrics report of their own work."""
    found = []
    for score in scores:
        notes = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in score.notes.items()]
        if score.candidate in METRICS:
            notes.append(f"that of `{score.candidate}`")
        found += [f"- `{score.name}`: {', '.join(notes)}."] if notes else []
    return found


def format_missing(report: AuditReport, kind: str) -> list[str]:
    """Return the audits without a score, and why they have none."""
    lines = [
        f"- `{name}` does not apply. {skip.sentence}"
        for name, skip in select_kind(kind, report.skipped)
    ]
    lines += [f"- `{name}` was not run." for name, _ in select_kind(kind, report.not_run)]
    return lines + [
        f"- `{name}` failed ({error})." for name, error in select_kind(kind, report.failed)
    ]


def select_kind(kind: str, audits: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """Yield the audits that measure privacy, or those that measure utility."""
    for name, value in audits.items():
        if (METRICS[name].kind if name in METRICS else "privacy") == kind:
            yield name, value


def format_score_row(score: Score) -> str:
    """Return the table row of a score."""
    worst = "" if score.worst_decile is None else f"{score.worst_decile:.3g}"
    return (
        f"| {score.name} | {score.value:.3g} | {score.low:.3g} to {score.high:.3g} "
        f"| {score.baseline:.3g} | {worst} |"
    )


def format_utility_row(score: Score, change: Score | None) -> str:
    """Return the table row of a utility score."""
    metric = METRICS[score.name]
    original = "" if score.original is None else f"{score.original:.3g}"
    lost = "" if change is None else f"{change.value:.3g} ({change.low:.3g} to {change.high:.3g})"
    return (
        f"| {score.name} | {metric.describe} | {'higher' if metric.better == 'up' else 'lower'} "
        f"| {score.value:.3g} | {score.low:.3g} to {score.high:.3g} | {original} | {lost} "
        f"| {score.baseline:.3g} |"
    )
