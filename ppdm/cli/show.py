"""`ppdm show`: show how one release ended; with --all every check, score and count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.cli.console import (
    VERDICT_STYLES,
    make_grid,
    make_text,
    shorten_path,
    wrap_item,
)
from ppdm.cli.home import open_home
from ppdm.cli.result import CommandResult

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ppdm.cli.outcome import ReleaseOutcome
    from tasks.release_summary import Summary


def show_release(name: str, home: Path | None, every: bool = False) -> CommandResult:
    """Return the panel of one release, and everything else if ``every`` is set."""
    from rich.console import Group

    from ppdm.cli.outcome import read_outcome
    from ppdm.cli.panels import render_outcome
    from ppdm.cli.release_ids import find_run
    from ppdm.cli.release_reply import build_release
    from ppdm.cli.replies.releases import ReleaseReply

    with open_home(home).transaction(f"show {name}") as db:
        outcome = read_outcome(db, find_run(db, name))
    view = render_outcome(outcome)
    if every:
        view = Group(view, *render_everything(outcome))
    return CommandResult(view, ReleaseReply(release=build_release(outcome)).as_payload())


def render_everything(outcome: ReleaseOutcome) -> Iterator[RenderableType]:
    """Yield gamma, every check, every score, decisions and counts."""
    from ppdm.cli.scores import render_scores

    summary = outcome.summary
    yield from render_guarantee(summary)
    yield from render_findings(summary)
    if summary.report and summary.report.scores:
        yield from ("", make_text("Scores", "bold"), render_scores(summary.report.scores))
    lines = [*list_decisions(summary), *list_counts(summary), *list_missing_audits(summary)]
    if summary.folder:
        lines.append(f"published in {shorten_path(summary.folder)}")
    if lines:
        yield from ("", make_text("Decisions, counts and audits that did not run", "bold"))
        yield "\n".join(line for text in lines for line in wrap_item(text))


def render_guarantee(summary: Summary) -> Iterator[RenderableType]:
    """Yield gamma of each unit, and the conditions of the guarantee."""
    if summary.guarantee is None:
        return
    yield from ("", make_text("Worst-case bound (gamma)", "bold"))
    yield make_grid([(f"one {name}", gamma) for name, gamma in summary.gammas().items()])
    words = f"{summary.guarantee.kind}: {' '.join(summary.guarantee.assumptions)}"
    yield "\n".join(wrap_item(words))


def render_findings(summary: Summary) -> Iterator[RenderableType]:
    """Yield every check with its outcome and sentence."""
    if summary.verdict is None:
        return
    yield from ("", make_text("Checks", "bold"))
    ordered = (*summary.verdict.failures, *summary.verdict.findings)
    rows = []
    for finding in dict.fromkeys(ordered):
        outcome = make_text(finding.outcome, VERDICT_STYLES[finding.outcome])
        observed = f"{finding.observed}. " if finding.observed else ""
        rows.append((outcome, f"{finding.check}: {observed}{finding.text}"))
    yield make_grid(rows)


def list_decisions(summary: Summary) -> Iterator[str]:
    """Yield the decisions about a release in review, and its withdrawal."""
    for one in summary.decisions:
        who = f"{one.person.name} ({one.shown})" if one.shown else one.person.name
        key = f" signed with key {one.signed.signature.key}" if one.signed else ""
        yield f"{one.choice} by {who} on {one.happened:%Y-%m-%d %H:%M}{key}: {one.note}"
    if summary.withdrawal is not None:
        yield f"{summary.withdrawal.by} withdrew it at {summary.withdrawal.at}"


def list_counts(summary: Summary) -> Iterator[str]:
    """Yield what was changed in addition to the perturbation itself."""
    yield from (f"{count:,} {what}" for what, count in count_changes(summary).items() if count)


def list_missing_audits(summary: Summary) -> Iterator[str]:
    """Yield the audits that did not apply, were not run, or failed."""
    if summary.report:
        skipped = summary.report.skipped.items()
        yield from (f"skipped {name}: {skip.sentence}" for name, skip in skipped)
        yield from (f"not run: {name}" for name in summary.report.not_run)
        yield from (f"failed {name}: {kind}" for name, kind in summary.report.failed.items())


def count_changes(summary: Summary) -> dict[str, int]:
    """Return what was changed in addition to the perturbation itself, with counts."""
    found: dict[str, int] = {}
    if summary.validated:
        clamped, imputed = summary.validated.clamped, summary.validated.imputed
        dropped = summary.validated.dropped_rows
        found["rows dropped for missing values or unlisted categories"] = dropped
        found["rows that repeat an earlier one in all features and the label"] = (
            summary.validated.repeated_rows
        )
        found |= {f"values of '{column}' moved to its bounds": n for column, n in clamped.items()}
        found |= {f"missing values of '{column}' filled": n for column, n in imputed.items()}
        other = summary.validated.other.items()
        found |= {f"values of '{column}' that became 'other'": n for column, n in other}
    if summary.sanitized:
        found["records set aside"] = summary.sanitized.set_aside
        found |= summary.sanitized.counts
    return found
