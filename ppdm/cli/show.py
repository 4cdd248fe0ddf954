"""`ppdm show`: show one release with all its checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.cli.console import format_approvals, format_lines, shorten_path, wrap_item, wrap_text
from ppdm.cli.home import open_home
from ppdm.cli.result import CommandResult

if TYPE_CHECKING:
    from tasks.release_summary import Summary


def show_release(release_id: str, home: Path | None) -> CommandResult:
    """Return the summary of one release."""
    from tasks.release_summary import read_summary

    summary = read_summary(open_home(home), release_id)
    return CommandResult(format_release(summary), {"release": summary.as_dict()})


def format_release(summary: Summary) -> str:
    """Return one release with its guarantee, checks, decisions and counts."""
    run = summary.run
    started = f"started {run.started:%Y-%m-%d %H:%M}"
    lines = [f"{run.release_id}  {summary.method}  {run.stage}  {started}"]
    for name, gamma in summary.gammas().items():
        lines.append(f"  gamma of one {name}: {gamma}")
    if summary.guarantee:
        lines += wrap_item(f"{summary.guarantee.kind}: {' '.join(summary.guarantee.assumptions)}")
    for finding in summary.verdict.findings if summary.verdict else ():
        lines.append(f"  {finding.outcome}  {finding.check}  {finding.observed}".rstrip())
        lines += wrap_text(finding.why, " " * 6)
    for one in summary.decisions:
        who = f"{one.person.name} ({one.shown})" if one.shown else one.person.name
        lines += wrap_item(f"{one.choice} by {who} on {one.happened:%Y-%m-%d %H:%M}: {one.note}")
    lines += format_approvals(summary)
    lines += [f"  {count:,} {what}" for what, count in count_changes(summary).items() if count]
    if summary.report:
        skipped = summary.report.skipped.items()
        lines += [f"  skipped  {name}: {skip.sentence}" for name, skip in skipped]
        lines += [f"  not run  {name}" for name in summary.report.not_run]
        lines += [f"  failed  {name}: {kind}" for name, kind in summary.report.failed.items()]
    if summary.folder:
        lines.append(f"  published in {shorten_path(summary.folder)}")
    return format_lines(lines)


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
    if summary.sanitized:
        found["records set aside for the basis"] = summary.sanitized.set_aside
        found |= summary.sanitized.counts
    return found
