"""What several commands print: tables, wrapped text, outcomes of releases, paths and options.

Tables are neither wrapped nor cut, so that each row is one line for `grep`. Sentences are wrapped.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.shown_text import show_line
from ppdm_core.model.verdict import Finding
from ppdm_core.numerics.amplification import (
    NO_USEFUL_BOUND,
    format_gamma_value,
    is_useless_bound,
)
from warehouse.stages import Stage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ppdm_core.model.score import Score
    from tasks.release_summary import Summary

WIDTH = 100  # of sentences
NO_LIMIT = 100_000  # columns
MAX_REASONS = 3  # a refusal must fit on one screen
MAX_REASON_LINES = 3

UNDECIDED_DRY_RUN = "REVIEW (dry run; a reviewer would have to decide)"


def get_width(limit: int = WIDTH) -> int:
    """Return the width of the terminal, but at most ``limit``, which also holds for a file."""
    return min(limit, shutil.get_terminal_size().columns) if sys.stdout.isatty() else limit


def format_table(
    rows: Iterable[Sequence[RenderableType]],
    titles: Sequence[str] = (),
    *,
    right: Collection[int] = (),
    indent: str = "",
    width: int = NO_LIMIT,
) -> str:
    """Return one aligned line for each row; only the last column shrinks to fit the width."""
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    table = Table.grid(padding=(0, 2))
    table.show_header = bool(titles)
    count = len(rows[0]) if rows else len(titles)
    for i, title in enumerate(titles or [""] * count):
        table.add_column(
            title,
            justify="right" if i in right else "left",
            no_wrap=i < count - 1,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(show_line(cell) if isinstance(cell, str) else cell for cell in row))
    console = Console(width=width, color_system=None, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(f"{indent}{line}".rstrip() for line in capture.get().splitlines())


def format_lines(lines: Iterable[str]) -> str:
    """Return lines as one text; names and reasons in them cannot add another line."""
    return "\n".join(map(show_line, lines))


def wrap_text(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Return wrapped lines; ``first`` stands before the first line and ``rest`` before the others.

    By default the later lines are indented by as much as the first.
    """
    return textwrap.wrap(
        show_line(text),
        get_width(),
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_outcome(summary: Summary) -> str:
    """Return how a release ended, with the reasons or what attackers get of it."""
    stage = summary.run.stage
    is_undecided_dry_run = summary.is_undecided and stage == Stage.DRY_RUN_PASSED
    ending = UNDECIDED_DRY_RUN if is_undecided_dry_run else stage.label
    lines = [f"{summary.run.release_id}  {summary.method}  {ending}"]
    lines += format_gammas(summary)
    lines += format_repeated_rows(summary)
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
    return format_lines(lines)


def format_gammas(summary: Summary) -> list[str]:
    """Return the line on amplification, and a second one if the promise is weaker."""
    ln_gammas = summary.ln_gammas()
    useless = {name for name, ln_gamma in ln_gammas.items() if is_useless_bound(ln_gamma)}
    short = ", ".join(
        f"{name} {format_gamma_value(ln_gamma)}{'*' if name in useless else ''}"
        for name, ln_gamma in ln_gammas.items()
    )
    is_weaker = summary.guarantee is not None and summary.guarantee.kind == "bounded_given_basis"
    lines = [f"  gamma: {short}" + (f"   * {NO_USEFUL_BOUND}" if useless else "")]
    if is_weaker:
        lines.append("  weaker promise: it depends on private data, as the card states")
    return lines


def format_repeated_rows(summary: Summary) -> list[str]:
    """Return how many rows of the table repeat an earlier one, if there are any."""
    found = summary.validated
    if found is None or not found.repeated_rows:
        return []
    rows = f"{found.repeated_rows:,} of {found.n:,} rows"
    return wrap_item(f"{rows} repeat an earlier one in all features and the label.")


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
    lines = wrap_text(text, "  - ")
    if max_lines is not None and len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], f"{lines[max_lines - 1][: get_width() - 4]} ..."]
    return lines


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
