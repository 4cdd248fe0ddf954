"""The table of two releases side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from ppdm.cli.console import MARKS, make_grid, make_text
from ppdm.cli.ledger import format_ln_gamma
from ppdm.cli.outcome import is_privacy
from ppdm.cli.panels import format_figure
from ppdm.cli.release_reply import finite_or_none

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ppdm.cli.outcome import Line, ReleaseOutcome
    from ppdm.cli.replies.releases import SettingBody, SideBody

    Pair = tuple[ReleaseOutcome, ReleaseOutcome]

NONE = "-"  # a release does not have it
DIGEST_LETTERS = 12


def render_pair(
    pair: Pair,
    sides: Sequence[SideBody],
    settings: Sequence[SettingBody] | None,
    lines: Mapping[str, tuple[Line | None, Line | None]],
) -> RenderableType:
    """Return one table with a part for each subject; it fits 80 columns."""
    shown = {line.name for outcome in pair for line in (*outcome.risks, *outcome.utility)}
    chosen = [both for name, both in lines.items() if name in shown]
    risks = [render_figures(both) for both in chosen if is_risk(both)]
    utility = [render_figures(both) for both in chosen if not is_risk(both)]
    parts: dict[str, list[tuple[RenderableType, ...]]] = {
        "Release": list(describe_sides(pair)),
        "Records": list(describe_records(sides)),
        "Settings that differ": list(describe_settings(settings)),
        "Risk: an attacker can": risks,
        "Utility": utility,
    }
    rows: list[tuple[RenderableType, ...]] = []
    for title, part in parts.items():
        rows += [("", "", ""), (make_text(title, "bold"), "", ""), *part] if part else []
    names = [outcome.summary.run.release_id for outcome in pair]
    note = f"Intervals are in brackets. All figures: ppdm diff {' '.join(names)} --json"
    return Group(make_grid(rows, ("", *names), wrap=(0, 1, 2)), "", make_text(note))


def describe_sides(pair: Pair) -> Iterator[tuple[str, str, str]]:
    """Yield outcome, method and bound; source and code only where they differ."""
    yield compare("outcome", pair, lambda one: one.headline.lower())
    yield compare("verdict", pair, lambda one: one.summary.verdict and one.summary.verdict.outcome)
    yield compare("method", pair, lambda one: one.summary.method)
    yield compare("gamma of a record", pair, format_gamma_of)
    yield compare("gamma of all releases", pair, format_ledger_of)
    first, second = (outcome.summary.run for outcome in pair)
    for what, *digests in (
        ("source", first.source_digest, second.source_digest),
        ("code", first.code_version, second.code_version),
    ):
        if digests[0] != digests[1]:
            yield what, digests[0][:DIGEST_LETTERS], digests[1][:DIGEST_LETTERS]


def compare(
    what: str, pair: Pair, find: Callable[[ReleaseOutcome], object | None]
) -> tuple[str, str, str]:
    """Return a row with what ``find`` returns for each release."""
    first, second = (format_value(find(outcome)) for outcome in pair)
    return what, first, second


def format_value(value: object | None) -> str:
    """Return a value as text: counts with commas, lists as JSON."""
    if value is None:
        return NONE
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return json.dumps(value, ensure_ascii=False)


def format_gamma_of(outcome: ReleaseOutcome) -> str | None:
    """Return the bound for a record; None before the table was perturbed."""
    return None if outcome.bound is None else format_ln_gamma(outcome.bound.ln_gamma)


def format_ledger_of(outcome: ReleaseOutcome) -> str | None:
    """Return what all releases up to this one add up to; None if it was not judged."""
    spent = outcome.summary.ln_ledger
    return None if spent is None else format_ln_gamma(finite_or_none(spent))


def describe_records(sides: Sequence[SideBody]) -> Iterator[tuple[str, str, str]]:
    """Yield the counts of records and rows."""
    for what, name in (
        ("records", "records"),
        ("rows dropped", "dropped_rows"),
        ("rows that repeat an earlier one", "repeated_rows"),
        ("records set aside", "set_aside"),
        ("released rows", "released_rows"),
    ):
        first, second = (format_value(getattr(side, name)) for side in sides)
        yield what, first, second


def describe_settings(settings: Sequence[SettingBody] | None) -> Iterator[tuple[str, str, str]]:
    """Yield the settings that differ."""
    if settings is None:
        yield "not known: a release ended before its file was stored", "", ""
    elif not settings:
        yield "none", "", ""
    for one in settings or ():
        yield one.name, format_value(one.first), format_value(one.second)


def render_figures(both: Sequence[Line | None]) -> tuple[RenderableType, ...]:
    """Return the row of one figure."""
    what = next(line.what for line in both if line is not None)
    return what, *map(render_figure, both)


def render_figure(line: Line | None) -> Text:
    """Return a figure with its interval and the mark of its limit."""
    if line is None:
        return Text(NONE)
    mark, style = MARKS[line.outcome]
    low, high = format_figure(line, line.low), format_figure(line, line.high)
    text = f"{format_figure(line, line.value)} [{low}, {high}]"
    return Text.assemble(text, (f" {mark}" if mark else "", style))


def is_risk(both: Sequence[Line | None]) -> bool:
    """Return whether a figure states a risk."""
    return any(line is not None and is_privacy(line) for line in both)
