"""The panel of a release: outcome, risks, utility, bound, ledger, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ppdm.cli.console import (
    MARKS,
    STYLES,
    format_home_of,
    make_grid,
    make_marked_text,
    make_panel,
    make_text,
    shorten_path,
)
from ppdm.cli.ledger import Entry, format_ln_gamma
from ppdm_core.numerics.amplification import NO_USEFUL_BOUND, is_useless_bound
from warehouse.stage_facts import EndingFacts
from warehouse.stages import DECIDE, Stage

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from ppdm.cli.outcome import Bound, Line, ReleaseOutcome
    from ppdm_core.model.verdict import Finding
    from tasks.release_summary import Summary

MAX_REASONS = 3
MIN_SHOWN_VALUE = 0.0005


def render_outcome(outcome: ReleaseOutcome) -> RenderableType:
    """Return the panel of a release."""
    summary = outcome.summary
    parts: list[RenderableType] = [make_text(format_sentence(outcome), "bold")]
    if outcome.risks:
        parts += ["", render_risks(outcome.risks)]
    parts += render_reasons(outcome.reasons)
    facts = list(describe_facts(outcome))
    if facts:
        parts += ["", make_grid(facts)]
    parts += ["", render_steps(list_next_steps(outcome))]
    date = f"{summary.run.started:%Y-%m-%d}"
    method = f" · {summary.method}" if summary.sanitized else ""
    heading = f"{summary.run.release_id}{method} · {date}"
    return make_panel(parts, outcome.headline, heading, STYLES[outcome.tone])


def render_steps(steps: Sequence[str]) -> Table:
    """Return what a person can do next."""
    titles = ["Next", *[""] * (len(steps) - 1)]
    return make_grid(zip((make_text(title, "bold") for title in titles), steps, strict=True))


def render_reasons(findings: Sequence[Finding]) -> list[RenderableType]:
    """Return the first findings against a release and what would change them."""
    rows = [
        (make_text(*MARKS[finding.outcome]), f"{finding.check}: {finding.text.strip()}")
        for finding in findings[:MAX_REASONS]
    ]
    return ["", make_grid(rows)] if rows else []


def render_risks(lines: Sequence[Line]) -> Table:
    """Return the table of risks: with the release, without it, limit and mark."""
    titles = ("an attacker can", "with the\nrelease", "without\nit", "limit", "")
    rows = []
    for line in lines:
        mark, style = MARKS[line.outcome]
        limit = "" if line.limit is None else format_figure(line, line.limit)
        cells = (line.what, format_figure(line, line.value), format_figure(line, line.without))
        rows.append((*cells, limit, make_text(mark, style)))
    return make_grid(rows, titles, right=(1, 2, 3), wrap=(0,))


def format_figure(line: Line, value: float) -> str:
    """Return a figure of a line as a percentage, or as a number."""
    if not math.isfinite(value):
        return "none"
    if line.is_share:
        return f"{100 * value:.1f} %"
    return f"{value:.3g}" if abs(value) >= MIN_SHOWN_VALUE else "0"


def format_sentence(outcome: ReleaseOutcome) -> str:
    """Return in one sentence how the release ended."""
    summary, stage = outcome.summary, outcome.summary.run.stage
    findings = summary.verdict.findings if summary.verdict else ()
    against, count = len(summary.refusals), len(findings)
    is_newest = summary.latest is None or summary.latest == summary.run.number
    stays = "" if is_newest else f"; version {summary.latest:04d} stays the latest"
    if stage == Stage.PUBLISHED:
        name = summary.settings.audience if summary.settings else ""
        audience = f" for {name}" if name else ""
        version = f"Version {summary.run.number:04d} is published{audience}"
        if not summary.refusals:
            return f"{version}: all {count} checks passed."
        names = ", ".join(one["name"] or one["by"] for one in summary.approvals or ())
        return f"{version}, after a review of {against} of {count} checks by {names}."
    if summary.withdrawal is not None:
        version = f"Version {summary.run.number:04d} {summary.withdrawal.words}"
        if summary.latest is None:
            return f"{version} No other version is published."
        return f"{version} Version {summary.latest:04d} is the latest."
    if stage == Stage.REFUSED and (summary.ending.rejected_by or summary.ending.refused_because):
        return f"{summary.refusals[0].why} Nothing was published{stays}."
    if stage == Stage.REFUSED:
        return f"Nothing was published: {against} of {count} checks did not pass{stays}."
    if stage == Stage.PART_JUDGED:
        return describe_part(summary, against, count)
    if summary.is_undecided:
        must = "would have to" if stage == Stage.DRY_RUN_PASSED else "must"
        checks = f"{against} of {count} checks"
        return f"Nothing is published: a reviewer {must} decide about {checks}{stays}."
    if stage == Stage.DRY_RUN_PASSED:
        return f"All {count} checks passed; a dry run publishes nothing."
    if stage == Stage.NO_CHANGE:
        return f"The bytes are those of version {summary.latest:04d}, which stays the latest."
    return f"It reached the stage '{stage}'; nothing was published{stays}."


def describe_part(summary: Summary, against: int, count: int) -> str:
    """Return how the part of this site in a common release was judged, before it leaves."""
    if summary.is_undecided:
        return f"Reviewers of this site decide about {against} of {count} checks before it is sent."
    return f"All {count} checks passed. The centre publishes if all parties allow it."


def describe_facts(outcome: ReleaseOutcome) -> Iterator[tuple[str, RenderableType]]:
    """Yield utility, bound, ledger and notes, each with its title."""
    yield from describe_utility(outcome.utility)
    if outcome.bound is not None:
        yield "Bound", make_marked_text(format_bound(outcome.bound), outcome.bound.outcome)
    if outcome.account is not None:
        is_limited = outcome.account["ln_limit"] is not None
        mark = outcome.ledger_outcome if is_limited else None
        yield "Ledger", make_marked_text(format_account(outcome.account), mark)
    validated = outcome.summary.validated
    if validated is not None and validated.repeated_rows:
        rows = f"{validated.repeated_rows:,} of {validated.n:,} rows"
        yield "Note", make_text(f"{rows} repeat an earlier one in all features and the label.")


def describe_utility(lines: Sequence[Line]) -> Iterator[tuple[str, RenderableType]]:
    """Yield the utility scores; the first one with a title."""
    for place, line in enumerate(lines):
        yield "Utility" if place == 0 else "", make_marked_text(format_utility(line), line.outcome)


def format_utility(line: Line) -> str:
    """Return a utility score with what it is on the original and without the release."""
    known = [
        f"{name} {format_figure(line, value)}"
        for name, value in (
            ("on the original", line.original),
            ("without it", line.without),
            ("limit", line.limit),
        )
        if value is not None
    ]
    return f"{line.what}: {format_figure(line, line.value)} ({', '.join(known)})"


def format_bound(bound: Bound) -> str:
    """Return the worst-case bound for a record in words."""
    limit = "" if bound.limit is None else f"; limit {bound.limit:,.0f}"
    if bound.ln_gamma is None:
        return f"none: a released row may reveal a whole record{limit}"
    gamma = format_ln_gamma(bound.ln_gamma)
    text = f"a row changes the odds of any statement about a record at most {gamma}-fold"
    if is_useless_bound(bound.ln_gamma):
        text = f"{NO_USEFUL_BOUND}: a row may change the odds about a record {gamma}-fold"
    weaker = "; weaker promise, it depends on private data" if bound.is_conditional else ""
    return f"{text}{weaker}{limit}"


def format_account(account: Entry) -> str:
    """Return what all releases have spent, and the room that is left."""
    spent = format_ln_gamma(account["ln_spent"])
    if account["ln_limit"] is None:
        return f"all releases together {spent}; no limit is set"
    room = account["releases_remaining"]
    more = "" if room is None else f"; room for {room:,} more like the latest"
    limit = format_ln_gamma(account["ln_limit"])
    return f"all releases together {spent} of at most {limit}{more}"


def list_next_steps(outcome: ReleaseOutcome) -> list[str]:
    """Return what a person can do now; the last command shows everything else."""
    summary, stage = outcome.summary, outcome.summary.run.stage
    release_id, home = summary.run.release_id, format_home_of(summary)
    rest = len(outcome.reasons) - MAX_REASONS
    reasons = "1 more reason" if rest == 1 else f"{rest} more reasons"
    more = f"{reasons} and every figure" if rest > 0 else "Every check and figure"
    every = f"{more}: ppdm show {release_id} --all{home}"
    if stage == Stage.PUBLISHED and summary.is_part:
        return [Stage.PART_JUDGED.next_step, every]
    if stage == Stage.PART_JUDGED and summary.is_undecided:
        return [f"{DECIDE.format(release_id=release_id)}{home}", stage.next_step, every]
    if stage == Stage.PUBLISHED and summary.folder:
        folder = shorten_path(summary.folder)
        return [f"Hand over {folder}", f"To check it: ppdm verify {folder}", every]
    if stage == Stage.REFUSED and summary.ending == EndingFacts():
        return [
            f"Change what helps (ppdm methods {summary.method} explains it), then release again.",
            "A reviewer decides about that release: these data were refused once.",
            every,
        ]
    if stage == Stage.AWAITING_REVIEW:
        return [*format_waiting(summary), every]
    if stage == Stage.REFUSED:
        return [every]
    step = stage.next_step.format(release_id=release_id)
    step = f"{step}{home}" if stage == Stage.WITHDRAWN else step
    return [step, every] if summary.verdict else [step]


def format_waiting(summary: Summary) -> list[str]:
    """Return the approvals of a release that awaits a decision, and the command to decide."""
    standing = summary.standing
    given = f"{len(standing.counted)} of {standing.needed}" if standing else "none"
    step = Stage.AWAITING_REVIEW.next_step.format(release_id=summary.run.release_id)
    signed = "; each is signed: --key FILE" if summary.has_keys else ""
    return [
        f"{step}{format_home_of(summary)}",
        f"Approvals: {given}, by others than its author{signed}.",
    ]
