"""The page of a tune: what is proposed, what each limit costs, and every setting."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from ppdm_core.model.policy import Policy
from ppdm_core.numerics.amplification import format_gamma
from ppdm_core.tuning.trial import Trial
from tasks.audit.cost_estimate import format_time
from tasks.publish.report.render import render_template
from tasks.publish.report.view import Step, Tone
from tasks.tune.frontier import draw_frontiers
from tasks.tune.plan import tunes_folder
from tasks.tune.result import TuneResult
from warehouse.home import create_private, translate_disk_errors

COLUMNS = ("", "setting", "use", "outcome", "did not pass", "gamma of a record", "round", "records")
NOTES = (
    "The settings were measured on draws of their own: the release is attacked on others, and only "
    "its verdict counts.",
    "Who chooses settings on the data gives a weaker promise: every later release of this dataset "
    "says how many were tried.",
    "Nothing was published, and nothing was charged to the ledger.",
)


@dataclass(frozen=True)
class TuneView:
    """What the page shows, as final texts."""

    title: str
    tone: Tone
    sentence: str
    facts: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    costs: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def render_page(result: TuneResult, policy: Policy, file: str = "") -> str:
    """Return the page as HTML without script or outside request.

    ``file`` is the name of the release file with the proposed setting, if one was written.
    """
    figures = draw_frontiers(result, dict(policy.limits))
    styles = ("report.css", "tune.css")
    return render_template("tune.html.j2", styles, view=build_view(result, file), figures=figures)


def build_view(result: TuneResult, file: str = "") -> TuneView:
    """Return what the page shows."""
    tone: Tone = "fail"
    total = result.tried_in_all
    if result.choice is not None:
        tone = "pass" if result.has_margin and not result.obstacles else "review"
    return TuneView(
        title=result.name,
        tone=tone,
        sentence=describe_outcome(result),
        facts=(
            ("settings", f"{result.tried}"),
            *([("with earlier tunes", f"{total}")] if total > result.tried else []),
            ("records", f"{result.records:,}"),
            ("measured on", f"up to {result.sample:,}"),
            ("use", result.utility.title),
            ("time", format_time(result.seconds)),
        ),
        steps=tuple(list_steps(result, file)),
        costs=tuple(each.sentence for each in result.trade_offs),
        columns=COLUMNS,
        rows=tuple(build_row(i, trial, result) for i, trial in enumerate(result.trials, start=1)),
        notes=NOTES,
    )


def describe_outcome(result: TuneResult) -> str:
    """Return in one or two sentences what a tune found."""
    choice = result.choice
    if choice is None:
        return f"None of {result.tried} settings keeps every limit."
    figure = result.utility.compute(choice.scores)
    use = f": {figure.words}" if figure else ""
    margin = (
        "" if result.has_margin else " It passes without a margin: other draws may break a limit."
    )
    return (
        f"Of {result.tried} settings, {choice.setting.title} has the best use that keeps every "
        f"limit{use}.{margin}"
    )


def list_steps(result: TuneResult, file: str) -> list[Step]:
    """Return what a person can do now."""
    steps = [Step(each) for each in result.obstacles]
    if result.choice is not None and file:
        command = f"ppdm release {shlex.quote(file)}"
        steps.append(Step("Release with the file that the tune wrote:", command))
    elif result.choice is not None:
        steps.append(Step("Put the proposed setting into [sanitizer] of the release file."))
    else:
        steps.append(
            Step(
                "Decide which limit or which use matters more, before anything is released: after "
                "a refusal, a reviewer decides about the next release of the same data."
            )
        )
    return steps


def build_row(number: int, trial: Trial, result: TuneResult) -> tuple[str, ...]:
    """Return a row of the table of settings."""
    figure = result.utility.compute(trial.scores)
    gamma = format_gamma(trial.guarantee.ln_record) if trial.guarantee else ""
    mark = f"{number} (proposed)" if trial.setting.digest == result.chosen else str(number)
    return (
        mark,
        trial.setting.title,
        figure.words if figure else "not measured",
        trial.outcome,
        trial.why_not or ", ".join(trial.broken),
        gamma,
        str(trial.round),
        f"{trial.records:,}",
    )


def find_page(home: Path, result: TuneResult) -> Path:
    """Return the file of a tune's page, in the private part of the home."""
    return tunes_folder(home) / f"{result.dataset}-{result.number:04d}.html"


def write_page(path: Path, page: str) -> None:
    """Write a page that only the steward may read."""
    with translate_disk_errors(path.parent):
        path.parent.mkdir(exist_ok=True)
        with create_private(path) as file:
            file.write(page.encode())
