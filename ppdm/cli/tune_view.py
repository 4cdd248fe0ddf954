"""What `ppdm tune` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.cli.console import MARKS, make_grid, make_panel, make_text, shorten_path
from ppdm.cli.panels import render_steps
from ppdm.cli.replies.tunes import (
    OfferBody,
    RiskBody,
    SettingBody,
    TradeOffBody,
    TuneReply,
    UtilityBody,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ppdm_core.tuning.trial import Trial
    from tasks.tune.result import TuneResult

MAX_SHOWN = 8  # settings; the page has all
DECIDE = "Decide which limit or which use matters more; no file was written."


def render_tune(result: TuneResult, written: Path | None, page: Path) -> RenderableType:
    """Return the panel of a tune: what is proposed, what limits cost, and what to do next."""
    from tasks.tune.page import describe_outcome

    parts: list[RenderableType] = [make_text(describe_outcome(result), "bold"), ""]
    parts.append(render_settings(result))
    costs = [each.sentence for each in result.trade_offs]
    for title, sentences in (("Limits", costs), ("Note", result.obstacles)):
        if sentences:
            rows = [(title if i == 0 else "", text) for i, text in enumerate(sentences)]
            parts += ["", make_grid(rows)]
    parts += ["", render_steps(list(list_next_steps(result, written, page)))]
    style = "red" if written is None else "green"
    if written is not None and (result.obstacles or not result.has_margin):
        style = "yellow"
    headline = "NO SETTING KEEPS THE POLICY" if written is None else "PROPOSED"
    subtitle = f"{result.name} · {result.records:,} records · {result.tried} settings"
    return make_panel(parts, headline, subtitle, style)


def render_settings(result: TuneResult) -> RenderableType:
    """Return the most promising settings as rows."""
    rows = []
    for trial in result.trials[:MAX_SHOWN]:
        mark, style = MARKS[trial.outcome]
        figure = result.utility.compute(trial.scores)
        rows.append(
            (
                make_text(mark, style),
                figure.words if figure else "not measured",
                trial.setting.title,
                trial.why_not or ", ".join(trial.broken),
            )
        )
    return make_grid(rows, ("", "use", "setting", "did not pass"), wrap=(2, 3))


def list_next_steps(result: TuneResult, written: Path | None, page: Path) -> Iterator[str]:
    """Yield what a person can do now."""
    if written is not None:
        yield f"ppdm release {shorten_path(written)}"
        yield (
            f"Every release of {result.dataset} now states the weaker promise: settings chosen on "
            f"the data, {result.tried_in_all} tried."
        )
    else:
        yield DECIDE
    yield f"All settings, with the frontier: {shorten_path(page)}"


def build_tune_reply(result: TuneResult, written: Path | None, page: Path) -> TuneReply:
    """Return the result as `--json` prints it."""
    return TuneReply(
        dataset=result.dataset,
        number=result.number,
        records=result.records,
        sample=result.sample,
        tried=result.tried,
        tried_in_all=result.tried_in_all,
        utility=dict(result.utility.weights),
        proposed=build_setting(result.choice, result) if result.choice else None,
        has_margin=result.has_margin,
        file=str(written.absolute()) if written else None,
        page=str(page.absolute()),
        obstacles=list(result.obstacles),
        trade_offs=[
            TradeOffBody(
                check=each.check,
                limit=each.limit,
                utility=each.utility,
                is_alone=each.is_alone,
                offers=[
                    OfferBody(needed=one.needed, gained=one.gained, others=list(one.others))
                    for one in each.offers
                ],
                sentence=each.sentence,
            )
            for each in result.trade_offs
        ],
        settings=[build_setting(trial, result) for trial in result.trials],
        seconds=result.seconds,
    )


def build_setting(trial: Trial, result: TuneResult) -> SettingBody:
    """Return one setting as `--json` prints it."""
    figure = result.utility.compute(trial.scores)
    ln_gamma = trial.guarantee.ln_record if trial.guarantee else math.inf
    return SettingBody(
        method=trial.setting.method,
        parameters=dict(trial.setting.parameters),
        outcome=trial.outcome,
        did_not_pass=list(trial.broken),
        why_not=trial.why_not,
        round=trial.round,
        records=trial.records,
        ln_gamma=ln_gamma if math.isfinite(ln_gamma) else None,
        utility=None
        if figure is None
        else UtilityBody(share=figure.share, low=figure.low, high=figure.high, words=figure.words),
        scores=[
            RiskBody(
                name=score.name,
                value=score.value,
                low=score.low,
                high=score.high,
                baseline=score.baseline,
            )
            for score in trial.scores
            if all(map(math.isfinite, (score.value, score.low, score.high, score.baseline)))
        ],
    )
