"""`ppdm diff`: settings, records, risk and utility of two releases side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm.cli.diff_view import is_risk, render_pair
from ppdm.cli.home import open_home
from ppdm.cli.outcome import build_line, read_outcome
from ppdm.cli.release_ids import find_run
from ppdm.cli.release_reply import finite_or_none
from ppdm.cli.replies.releases import DiffReply, FigureBody, ScorePairBody, SettingBody, SideBody
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput
from ppdm_core.model.score import is_sound
from tasks.publish.report.facts import build_judgement

if TYPE_CHECKING:
    from ppdm.cli.outcome import Line, ReleaseOutcome
    from tasks.release_summary import Summary

    Pair = tuple[ReleaseOutcome, ReleaseOutcome]


def compare_releases(first: str, second: str, home: Path | None) -> CommandResult:
    """Return two releases side by side; raise BadInput if both names stand for one."""
    with open_home(home).transaction("diff") as db:
        runs = find_run(db, first), find_run(db, second)
        if runs[0].release_id == runs[1].release_id:
            raise BadInput(
                f"Both names stand for {runs[0].release_id}.",
                remedy="Name two releases; see: ppdm status",
            )
        pair = read_outcome(db, runs[0]), read_outcome(db, runs[1])
    first_side, second_side = map(build_side, pair)
    settings, lines = compare_settings(pair), list_lines(pair)
    reply = DiffReply(
        first=first_side,
        second=second_side,
        settings=settings,
        scores=[build_pair(name, *both) for name, both in lines.items()],
    )
    view = render_pair(pair, (first_side, second_side), settings, lines)
    return CommandResult(view, reply.as_payload())


def build_side(outcome: ReleaseOutcome) -> SideBody:
    """Return what one release is, and its counts."""
    summary = outcome.summary
    validated, sanitized = summary.validated, summary.sanitized
    return SideBody(
        release_id=summary.run.release_id,
        stage=summary.run.stage,
        started=summary.run.started.isoformat(),
        verdict=summary.verdict.outcome if summary.verdict else None,
        method=sanitized.method if sanitized else None,
        source=summary.run.source_digest,
        code_version=summary.run.code_version,
        records=validated.n if validated else None,
        dropped_rows=validated.dropped_rows if validated else None,
        repeated_rows=validated.repeated_rows if validated else None,
        set_aside=sanitized.set_aside if sanitized else None,
        released_rows=sanitized.released if sanitized else None,
        ln_gamma_record=outcome.bound.ln_gamma if outcome.bound else None,
        ln_ledger=finite_or_none(summary.ln_ledger),
    )


def compare_settings(pair: Pair) -> list[SettingBody] | None:
    """Return the settings that differ, sorted by name; None if one release stored none."""
    files = [read_settings(outcome.summary) for outcome in pair]
    if files[0] is None or files[1] is None:
        return None
    names = sorted(files[0].keys() | files[1].keys())
    found = [(name, files[0].get(name), files[1].get(name)) for name in names]
    return [SettingBody(name=name, first=a, second=b) for name, a, b in found if a != b]


def read_settings(summary: Summary) -> dict[str, Any] | None:
    """Return the release file of a release as one dict with dotted names; None if none is stored.

    The folder of the file is left out: it is no setting.
    """
    if summary.settings is None:
        return None
    content = json.loads(summary.settings.file)
    return dict(flatten({name: value for name, value in content.items() if name != "base"}))


def flatten(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of nested dicts with its dotted name; empty ones are left out."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{before}{name}.")
        elif value is not None:
            yield f"{before}{name}", value


def list_lines(pair: Pair) -> dict[str, tuple[Line | None, Line | None]]:
    """Return every measured figure by name, for both releases; risks come first."""
    first, second = (build_lines_by_name(outcome) for outcome in pair)
    found = {name: (first.get(name), second.get(name)) for name in {**first, **second}}
    return dict(sorted(found.items(), key=lambda item: not is_risk(item[1])))


def build_lines_by_name(outcome: ReleaseOutcome) -> dict[str, Line]:
    """Return the line of every sound score of a release."""
    summary = outcome.summary
    judgement = build_judgement(summary)
    scores = summary.report.scores if summary.report else ()
    return {score.name: build_line(score, judgement) for score in scores if is_sound(score)}


def build_pair(name: str, first: Line | None, second: Line | None) -> ScorePairBody:
    """Return one figure of both releases."""
    return ScorePairBody(
        name=name,
        kind="privacy" if is_risk((first, second)) else "utility",
        first=build_figure(first),
        second=build_figure(second),
    )


def build_figure(line: Line | None) -> FigureBody | None:
    """Return a figure with interval, baseline and limit; None if it was not measured."""
    if line is None:
        return None
    return FigureBody(
        value=line.value,
        low=finite_or_none(line.low),
        high=finite_or_none(line.high),
        baseline=finite_or_none(line.without),
        limit=finite_or_none(line.limit),
        outcome=line.outcome,
    )
