"""The texts that several commands print: releases, runs, wrapped items, paths and options."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.verdict import Finding
from ppdm_core.numerics.amplification import (
    NO_USEFUL_BOUND,
    format_gamma_value,
    is_useless_bound,
)
from warehouse.stages import Stage

if TYPE_CHECKING:
    from ppdm_core.model.score import Score
    from tasks.context import ReleaseContext
    from tasks.release_summary import Summary
    from warehouse.database import Run

WIDTH = 100
MAX_REASONS = 3  # a refusal must fit on one screen
MAX_REASON_LINES = 3

UNDECIDED_DRY_RUN = "REVIEW (dry run; a reviewer would have to decide)"


def format_outcome(summary: Summary) -> str:
    """Return how a release ended, with the reasons or what attackers get of it."""
    stage = summary.run.stage
    is_undecided_dry_run = summary.is_undecided and stage == Stage.DRY_RUN_PASSED
    ending = UNDECIDED_DRY_RUN if is_undecided_dry_run else stage.label
    lines = [f"{summary.run.release_id}  {summary.method}  {ending}"]
    lines.append(format_gammas(summary))
    if stage == Stage.REFUSED or summary.is_undecided:
        failures = summary.refusals
        lines += [line for finding in failures[:MAX_REASONS] for line in format_reason(finding)]
        more = len(failures) - MAX_REASONS
        extra = f" ({more} more)" if more > 0 else ""
        lines.append(f"  Every check{extra}: {format_show_command(summary)}")
        lines += format_approvals(summary)
    else:
        lines += format_attacks(summary)
        lines += format_review(summary)
    if summary.folder:
        lines.append(f"  Dataset, manifest, card: {shorten_path(summary.folder)}")
    return "\n".join(lines)


def format_gammas(summary: Summary) -> str:
    """Return the line on amplification, and a second one if the promise is weaker."""
    ln_gammas = summary.ln_gammas()
    useless = {name for name, ln_gamma in ln_gammas.items() if is_useless_bound(ln_gamma)}
    short = ", ".join(
        f"{name} {format_gamma_value(ln_gamma)}{'*' if name in useless else ''}"
        for name, ln_gamma in ln_gammas.items()
    )
    is_weaker = summary.guarantee is not None and summary.guarantee.kind == "bounded_given_basis"
    return (
        f"  gamma: {short}"
        + (f"   * {NO_USEFUL_BOUND}" if useless else "")
        + ("\n  weaker promise: a basis or bounds come from the private data" if is_weaker else "")
    )


def format_reason(finding: Finding) -> list[str]:
    """Return a finding as an item of at most three lines."""
    return wrap_item(f"{finding.check}: {finding.why}", max_lines=MAX_REASON_LINES)


def format_attacks(summary: Summary) -> list[str]:
    """Return one sentence for each attack: its judged score, or else its first.

    Of the utility scores, only judged ones and those of a summary are included; the card has all.
    """
    if summary.report is None or summary.verdict is None:
        return []
    judged = {finding.check for finding in summary.verdict.findings}
    chosen: dict[str, str] = {}
    for score in sorted(summary.report.scores, key=lambda score: score.name not in judged):
        if score.kind == "privacy" or score.name in judged or is_in_summary(score):
            chosen.setdefault(score.name.split(".")[0], score.sentence)
    return [line for sentence in chosen.values() for line in wrap_item(sentence)]


def is_in_summary(score: Score) -> bool:
    """Return whether the score of a release itself belongs in a short summary."""
    from ppdm_core.metrics import METRICS

    return score.name in METRICS and METRICS[score.name].in_summary


def format_review(summary: Summary) -> list[str]:
    """Return which checks a reviewer decided, and who approved."""
    if summary.verdict is None or not summary.verdict.failures:
        return []
    checks = ", ".join(finding.check for finding in summary.verdict.failures)
    names = ", ".join(one["name"] or one["by"] for one in summary.approvals or ())
    return wrap_item(f"Decided by review: {checks}. Approved by: {names or 'no one'}.")


def wrap_item(text: str, max_lines: int | None = None) -> list[str]:
    """Return a text as the wrapped lines of a list item, cut after ``max_lines``."""
    lines = textwrap.wrap(text, WIDTH - 4)
    if max_lines is not None and len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], lines[max_lines - 1][: WIDTH - 8] + " ..."]
    return [f"  {'- ' if number == 0 else '  '}{line}" for number, line in enumerate(lines)]


def format_approvals(summary: Summary) -> list[str]:
    """Return the approvals of a release that awaits a decision, and the command to decide."""
    standing = summary.standing
    if standing is None:
        return []
    given = f"{len(standing.counted)} of {standing.needed}"
    return [
        f"  Approvals: {given}, by others than its author.",
        f"  {format_decide_command(summary)}",
    ]


def format_decide_command(summary: Summary) -> str:
    """Return the command that decides about a release."""
    next_step = Stage.AWAITING_REVIEW.next_step.format(release_id=summary.run.release_id)
    return f"{next_step}{format_summary_home(summary)}"


def format_show_command(summary: Summary) -> str:
    """Return the command that shows every check of a release."""
    return f"ppdm show {summary.run.release_id}{format_summary_home(summary)}"


def format_summary_home(summary: Summary) -> str:
    """Return the --home option that a release needs, or "" for the default home."""
    home = shorten_path(summary.home)
    return "" if home == ".ppdm" else f" --home {home}"


def format_home_option(home: Path | None) -> str:
    """Return the --home option for a path that was given, or ""."""
    return "" if home is None else f" --home {shlex.quote(str(home))}"


def shorten_path(path: Path) -> str:
    """Return a path relative to the working directory if it is below it."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


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
        lines += [f"  {finding.outcome}  {finding.check}  {finding.observed}"]
        lines += [f"      {line}" for line in textwrap.wrap(finding.why, WIDTH - 6)]
    for one in summary.decisions:
        who = f"{one.person.name} ({one.shown})" if one.shown else one.person.name
        lines += wrap_item(f"{one.choice} by {who} on {one.happened:%Y-%m-%d %H:%M}: {one.note}")
    lines += format_approvals(summary)
    lines += [f"  {count:,} {what}" for what, count in count_changes(summary).items() if count]
    if summary.report:
        lines += [f"  skipped  {name}: {why}" for name, why in summary.report.skipped.items()]
        lines += [f"  not run  {name}" for name in summary.report.not_run]
        lines += [f"  failed  {name}: {kind}" for name, kind in summary.report.failed.items()]
    if summary.folder:
        lines.append(f"  published in {shorten_path(summary.folder)}")
    return "\n".join(lines)


def count_changes(summary: Summary) -> dict[str, int]:
    """Return what was changed in addition to the perturbation itself, with counts."""
    found: dict[str, int] = {}
    if summary.validated:
        clamped, imputed = summary.validated.clamped, summary.validated.imputed
        dropped = summary.validated.dropped_rows
        found["rows dropped for missing values or unlisted categories"] = dropped
        found |= {f"values of '{column}' moved to its bounds": n for column, n in clamped.items()}
        found |= {f"missing values of '{column}' filled": n for column, n in imputed.items()}
    if summary.sanitized:
        found["records set aside for the basis"] = summary.sanitized.set_aside
        found |= summary.sanitized.counts
    return found


def format_runs(runs: Sequence[Run]) -> str:
    """Return one line for each run."""
    if not runs:
        return "No release yet."
    width = max(len(run.release_id) for run in runs)
    return "\n".join(
        f"{run.release_id:<{width}}  {run.stage:<10}  {run.started:%Y-%m-%d %H:%M}" for run in runs
    )


def format_check(path: Path, context: ReleaseContext, facts: Mapping[str, Any]) -> str:
    """Return what `ppdm check` found: counts, limits that are too small, unstable columns."""
    lines = [
        f"{path.name} and {Path(context.source.path).name} are fine: {facts['rows']:,} records, "
        f"{facts['checks']} checks, method {context.method}."
    ]
    for name, smallest in facts["smallest_limits"].items():
        limit = context.policy.limits[name]
        too_small = (
            " Its limit is smaller: no release can keep it." if limit.value < smallest else ""
        )
        lines.append(
            f"  {name}: so few records certify {100 * smallest:.2g} % at best, "
            f"even if the attack gets nothing.{too_small}"
        )
    for name, share in facts["restless_columns"].items():
        lines.append(
            f"  Column '{name}' changed in {100 * share:.0f} % of the records since the last run: "
            "if it changes every time, every record gets new noise and is charged in every "
            "release, and the noise averages out. Exclude it, or release a coarser one."
        )
    return "\n".join(lines)
