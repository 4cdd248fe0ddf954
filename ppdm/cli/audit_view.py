"""What `ppdm audit` prints: the verdict in a panel, then on request every score and sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from ppdm.cli.console import VERDICT_STYLES, make_grid, make_panel, make_text, wrap_item, wrap_text
from ppdm.cli.outcome import build_lines
from ppdm.cli.panels import (
    MAX_REASONS,
    describe_utility,
    render_reasons,
    render_risks,
    render_steps,
)
from ppdm.cli.release_reply import format_skips, split_name
from ppdm.cli.scores import render_scores
from tasks.publish.report.scores import Judgement

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ppdm.cli.table_audit import AuditedFiles
    from ppdm_core.model.policy import Policy
    from ppdm_core.model.score import AuditReport, Score
    from ppdm_core.model.verdict import Finding, Outcome
    from ppdm_core.two_tables.comparison import TableComparison

SENTENCES: dict[Outcome, str] = {  # the number of checks with this outcome, and of all
    "PASS": "All {1} checks passed.",
    "REVIEW": "A person must decide about {0} of {1} checks: the measurements do not.",
    "FAIL": "{0} of {1} checks failed.",
}


@dataclass(frozen=True)
class JudgedTables:
    """A release in files, with what its audit found."""

    files: AuditedFiles
    case: TableComparison
    policy: Policy
    report: AuditReport
    outcome: Outcome
    findings: tuple[Finding, ...]


def render_audit(judged: JudgedTables, every: bool) -> RenderableType:
    """Return the panel, and with ``every`` all that the audit found."""
    panel = render_panel(judged, every)
    return Group(panel, *render_everything(judged)) if every else panel


def render_panel(judged: JudgedTables, every: bool) -> RenderableType:
    """Return verdict, risks, reasons and utility."""
    judgement = Judgement.of(judged.policy.limits, judged.findings)
    risks, utility = build_lines(judged.report.scores, judgement)
    shown = {line.name for line in risks if line.outcome == "FAIL"}
    order = ("FAIL", "REVIEW")
    reasons = sorted(
        (one for one in judged.findings if one.outcome in order and one.check not in shown),
        key=lambda finding: order.index(finding.outcome),
    )
    part = sum(finding.outcome == judged.outcome for finding in judged.findings)
    sentence = SENTENCES[judged.outcome].format(part, len(judged.findings))
    parts: list[RenderableType] = [make_text(sentence, "bold")]
    parts += [make_text(line) for line in format_heading(judged)]
    parts += ["", render_risks(risks)] if risks else []
    parts += render_reasons(reasons)
    facts = list(describe_utility(utility))
    parts += ["", make_grid(facts)] if facts else []
    if not every:
        more = len(reasons) - MAX_REASONS
        words = f"{more} more reasons and every score" if more > 0 else "Every score and sentence"
        parts += ["", render_steps([f"{words}: the same command with --all"])]
    names = f"{Path(judged.files.released).name} against {Path(judged.files.original).name}"
    return make_panel(parts, judged.outcome, names, VERDICT_STYLES[judged.outcome])


def render_everything(judged: JudgedTables) -> Iterator[RenderableType]:
    """Yield every score, the sentences, and what was left out or did not apply."""
    case, report = judged.case, judged.report
    yield from ("", render_scores(report.scores), "")
    below = {finding.check for finding in judged.findings if finding.outcome != "PASS"}
    chosen = choose_scores(report.scores, judged.findings)
    sentences = dict.fromkeys(score.sentence for score in chosen if score.name not in below)
    lines = [line for sentence in sentences for line in wrap_item(sentence)]
    for title, reasons in (
        ("Left out", case.left_out),
        ("Not run", format_skips(report.not_run)),
        ("Does not apply", format_skips(report.skipped)),
        ("Failed", report.failed),
    ):
        lines += format_reasons(title, reasons)
    for finding in sorted(judged.findings, key=lambda finding: finding.outcome):
        if finding.outcome != "PASS":
            observed = f" {finding.observed}" if finding.observed else ""
            lines += wrap_item(f"{finding.outcome} {finding.check}{observed}: {finding.text}")
    yield "\n".join(lines)


def format_heading(judged: JudgedTables) -> Iterator[str]:
    """Yield what is compared: tables, columns, alignment and control."""
    case = judged.case
    d, s = len(case.truth.schema.numeric), case.draw.Y.shape[1]
    space = f"{d} columns in common" if case.is_common else f"{d} columns against {s} others"
    outside = 0 if case.all_persons is None else len(case.all_persons.X) - len(case.truth.X)
    control = f"{outside:,} records in the control" if outside else "no control"
    alignment = "rows aligned" if case.is_declared_aligned else "rows not aligned"
    yield f"{len(case.truth.X):,} records, {space}, {alignment}, {control}."
    if not case.aligned:
        yield "The numbers of rows differ: judged by the policy for synthetic data."
    if case.draw.public.preserves_distances:
        yield "The release preserves every distance between records, up to a change of scale."
    if case.matched:
        (first, own), *others = case.matched.items()
        more = "".join(f", {name} with {original}" for name, original in others)
        yield f"By its values, column {first} is matched with {own}{more}."
    if case.control_overlap == 1:
        yield "1 row of the control is a row of the original, and was left out."
    elif case.control_overlap:
        count = f"{case.control_overlap:,}"
        yield f"{count} rows of the control are rows of the original, and were left out."


def choose_scores(scores: tuple[Score, ...], findings: tuple[Finding, ...]) -> list[Score]:
    """Return one score of each attack and scenario: the judged one, or else the first."""
    judged = {finding.check for finding in findings}
    found: dict[tuple[str | None, str | None, str], Score] = {}
    for score in sorted(scores, key=lambda score: score.name not in judged):
        attack, scenario, metric = split_name(score)
        found.setdefault((attack, scenario, "" if attack else metric), score)
    return [score for score in scores if score in found.values()]


def format_reasons(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield one wrapped line for each reason, with all names that have it."""
    grouped: dict[str, list[str]] = {}
    for name, why in reasons.items():
        grouped.setdefault(f"{why[0].upper()}{why[1:].rstrip('.')}.", []).append(name)
    for sentence, names in grouped.items():
        line = f"{title}: {', '.join(names)}. {sentence}"
        yield from wrap_text(line, rest="  ")
