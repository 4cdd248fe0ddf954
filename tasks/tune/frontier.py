"""Figures of a tune: risk above the baseline against utility, one for each limit on a risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ppdm_core.gates.score_limits import compute_limit
from ppdm_core.model.policy import Limit
from ppdm_core.model.verdict import Outcome
from ppdm_core.tuning.choice import find_dominated
from tasks.publish.report.drawing import (
    Dot,
    Drawing,
    Figure,
    LegendItem,
    Line,
    Scale,
    Text,
    choose_top,
    draw_both_widths,
    draw_grid_column,
    draw_grid_row,
)
from tasks.publish.report.history_figures import (
    BOTTOM,
    HEIGHT,
    LEFT,
    LIMIT_LINE,
    RIGHT,
    SYMBOLS,
    TOP,
)
from tasks.publish.report.scores import find_title, is_risk_share
from tasks.publish.report.view import Tone
from tasks.publish.report.words import format_percent
from tasks.tune.result import TuneResult

TONES: dict[Outcome, Tone] = {"PASS": "pass", "REVIEW": "review", "FAIL": "fail"}
MEANINGS: dict[Outcome, str] = {
    "PASS": "keeps every limit",
    "REVIEW": "does not decide",
    "FAIL": "breaks a limit",
}


@dataclass(frozen=True)
class Point:
    """One setting in a figure; all numbers are shares."""

    number: int  # in the table of settings
    risk: float  # above the baseline
    risk_low: float
    risk_high: float
    use: float
    use_low: float
    use_high: float
    outcome: Outcome
    is_chosen: bool


def draw_frontiers(result: TuneResult, limits: dict[str, Limit]) -> list[Figure]:
    """Return a figure for each limited risk that is a share and differs between settings."""
    figures = []
    for name, limit in limits.items():
        points = list(list_points(result, name))
        if len({point.risk for point in points}) > 1:
            line = find_limit_line(result, name, limit)
            figures.append(draw_frontier(result, name, line, points))
    return figures


def list_points(result: TuneResult, name: str) -> Iterator[Point]:
    """Yield the settings with both figures."""
    for number, trial in enumerate(result.trials, start=1):
        score, use = trial.find_score(name), result.utility.compute(trial.scores)
        if score is None or use is None or not is_risk_share(score):
            continue
        yield Point(
            number=number,
            risk=score.value - score.baseline,
            risk_low=score.low - score.baseline,
            risk_high=score.high - score.baseline,
            use=use.share,
            use_low=use.low,
            use_high=use.high,
            outcome=trial.outcome,
            is_chosen=trial.setting.digest == result.chosen,
        )


def find_limit_line(result: TuneResult, name: str, limit: Limit) -> float:
    """Return the limit as an excess over the baseline."""
    if not limit.absolute:
        return limit.value
    score = next(found for trial in result.trials if (found := trial.find_score(name)))
    return compute_limit(score, limit) - score.baseline


def draw_frontier(result: TuneResult, name: str, limit: float, points: Sequence[Point]) -> Figure:
    """Return one figure with its table."""
    title = f"{find_title(name)}: risk against use"
    dominated = find_dominated([(point.risk, point.use) for point in points])
    outcomes = dict.fromkeys(point.outcome for point in points)
    legend: list[LegendItem] = [(SYMBOLS[TONES[one]], MEANINGS[one]) for one in outcomes]
    legend += [
        (Dot(10, 7, "dominated"), "another setting reveals less and keeps more"),
        (Line(((1, 7), (19, 7)), "frontier"), "frontier"),
        (Line(((1, 7), (19, 7)), "reach"), "interval"),
        LIMIT_LINE,
    ]
    if any(point.is_chosen for point in points):
        legend.insert(0, (Dot(10, 7, "ring", radius=6.5), "proposed"))
    rows = tuple(
        (
            str(point.number),
            format_percent(point.risk),
            f"{format_percent(point.risk_low)} to {format_percent(point.risk_high)}",
            format_percent(point.use),
            "yes" if is_dominated else "no",
        )
        for point, is_dominated in zip(points, dominated, strict=True)
    )
    columns = ("setting", "risk above the baseline", "interval", "use kept", "dominated")
    note = (
        f"Risk is “{name}” above an attacker who ignores the release. Use is the share of the way "
        f"from no release (0) to the original table (100): {result.utility.title.lower()}. The "
        "better a setting, the farther down and to the right it is."
    )
    drawings = draw_both_widths(lambda width: draw_points(title, width, limit, points, dominated))
    return Figure(title, tuple(legend), drawings, columns, rows, note)


def draw_points(
    title: str, width: float, limit: float, points: Sequence[Point], dominated: Sequence[bool]
) -> Drawing:
    """Return one width of a frontier."""
    drawing = Drawing(title, width, HEIGHT)
    top = choose_top([*(point.risk_high for point in points), limit])
    low = min(0.0, *(point.use for point in points))
    low = max(-1.0, low)
    across = Scale(low, 1.0, LEFT, width - RIGHT)
    up = Scale(0.0, top, HEIGHT - BOTTOM, TOP)
    for step in range(6):
        use, risk = low + (1.0 - low) * step / 5, top * step / 5
        draw_grid_column(drawing, across.place(use), (TOP, HEIGHT - BOTTOM), f"{100 * use:.0f}")
        draw_grid_row(drawing, up.place(risk), (LEFT, width - RIGHT), f"{100 * risk:.3g}")
    middle = (across.start + across.end) / 2
    drawing.add(Text(middle, HEIGHT - 10, "use kept, in 100", "tick", "middle"))
    drawing.add(Text(LEFT, TOP - 4, "risk above the baseline, in 100", "tick"))
    y = up.place(limit)
    drawing.add(Line(((LEFT, y), (width - RIGHT, y)), "limit-line"))
    pairs = sorted(zip(points, dominated, strict=True), key=lambda pair: not pair[1])
    for point, is_dominated in pairs:
        draw_reach(drawing, across, up, point, is_dominated)
    best = sorted((point for point, is_dominated in pairs if not is_dominated), key=lambda p: p.use)
    stair = tuple((across.place(point.use), up.place(point.risk)) for point in best)
    if len(stair) > 1:
        drawing.add(Line(stair, "frontier"))
    for point, is_dominated in sorted(pairs, key=lambda pair: pair[0].is_chosen):  # on top
        x, y = across.place(point.use), up.place(point.risk)
        symbol = SYMBOLS[TONES[point.outcome]]
        drawing.add(Dot(x, y, "dominated" if is_dominated else symbol.style, symbol.form))
        if point.is_chosen:
            drawing.add(Dot(x, y, "ring", radius=9.0))
    return drawing


def draw_reach(
    drawing: Drawing, across: Scale, up: Scale, point: Point, is_dominated: bool
) -> None:
    """Add the intervals of a setting: of its risk upright, of its use level."""
    style = "dominated-reach" if is_dominated else "reach"
    x, y = across.place(point.use), up.place(point.risk)
    drawing.add(Line(((x, up.place(point.risk_low)), (x, up.place(point.risk_high))), style))
    drawing.add(Line(((across.place(point.use_low), y), (across.place(point.use_high), y)), style))
