"""Figures of all releases of a dataset: risk against use, and the ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
from tasks.publish.report.view import DatasetHistory, LedgerPlan, ReleaseLine, Tone
from tasks.publish.report.words import format_ln_gamma, format_percent

SYMBOLS: dict[Tone, Dot] = {
    "pass": Dot(10, 7, "tone-pass"),
    "review": Dot(10, 7, "tone-review", "square"),
    "fail": Dot(10, 7, "tone-fail", "cross"),
    "neutral": Dot(10, 7, "tone-neutral", "diamond"),
}
MEANINGS: dict[Tone, str] = {
    "pass": "published",
    "review": "waits for review",
    "fail": "refused",
    "neutral": "ended otherwise",
}
LIMIT_LINE: LegendItem = (Line(((1, 7), (19, 7)), "limit-line"), "limit")
MAX_LABELS = 8  # of points; more would overlap
LABEL_WIDTH, LABEL_HEIGHT = 90.0, 15.0
MAX_FORECAST = 6  # steps that are drawn
HEIGHT = 300.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 30.0, 16.0, 46.0  # margins


def draw_releases(history: DatasetHistory) -> Figure | None:
    """Return risk against use of all releases, with both limits."""
    points = [x for x in history.releases if x.risk is not None and x.utility is not None]
    rows = tuple(
        (
            f"{x.release_id} (this one)" if x.is_this else x.release_id,
            x.day,
            x.method,
            x.outcome,
            format_percent(x.risk) or "not measured",
            format_percent(x.utility) or "not measured",
        )
        for x in history.releases
    )
    columns = ("release", "date", "method", "outcome", "risk", "use")
    title = "All releases: risk against use"
    if not points:
        return Figure(title, (), (), columns, rows)
    tones = dict.fromkeys(x.tone for x in points)
    legend: list[LegendItem] = [(SYMBOLS[tone], MEANINGS[tone]) for tone in tones]
    legend.append((Dot(10, 7, "ring", radius=6.5), "this release"))
    legend.append(LIMIT_LINE)
    drawings = draw_both_widths(lambda width: draw_points(title, width, history, points))
    note = (
        f"Risk is the score “{history.risk_title}”, use is “{history.utility_title}”. The better a "
        "release, the farther down and to the right it is."
    )
    return Figure(title, tuple(legend), drawings, columns, rows, note)


def draw_points(
    title: str, width: float, history: DatasetHistory, points: list[ReleaseLine]
) -> Drawing:
    """Return one width of the plot of risk against use."""
    height = HEIGHT
    drawing = Drawing(title, width, height)
    risks = [*(x.risk or 0.0 for x in points), history.risk_limit or 0.0]
    uses = [*(x.utility or 0.0 for x in points), history.utility_limit or 1.0]
    low = max(0, int(min(uses) * 10) - 1) / 10
    across = Scale(low, 1.0, LEFT, width - RIGHT)
    up = Scale(0.0, choose_top(risks), height - BOTTOM, TOP)
    for tenth in range(round(10 * low), 11, 1 if low >= 0.5 else 2):
        place = across.place(tenth / 10)
        draw_grid_column(drawing, place, (TOP, height - BOTTOM), f"{10 * tenth}")
    for step in range(6):
        value = up.high * step / 5
        draw_grid_row(drawing, up.place(value), (LEFT, width - RIGHT), f"{100 * value:.3g}")
    middle = (across.start + across.end) / 2
    drawing.add(Text(middle, height - 10, f"{history.utility_title}, in 100", "tick", "middle"))
    drawing.add(Text(LEFT, TOP - 4, f"{history.risk_title}, in 100", "tick"))
    if history.risk_limit is not None:
        y = up.place(history.risk_limit)
        drawing.add(Line(((LEFT, y), (width - RIGHT, y)), "limit-line"))
    if history.utility_limit is not None:
        x = across.place(history.utility_limit)
        drawing.add(Line(((x, TOP), (x, height - BOTTOM)), "limit-line"))
    shown = points[-MAX_LABELS:]
    labels: list[Text] = []
    for point in points:
        x, y = across.place(point.utility or 0.0), up.place(point.risk or 0.0)
        symbol = SYMBOLS[point.tone]
        drawing.add(Dot(x, y, symbol.style, symbol.form))
        if point.is_this:
            drawing.add(Dot(x, y, "ring", radius=9.0))
        if point in shown or point.is_this:
            label = label_point(x, y, point.release_id, x < middle, labels)
            labels += [label] if label else []
    drawing.add(*labels)
    return drawing


def label_point(
    x: float, y: float, text: str, is_right: bool, others: Sequence[Text]
) -> Text | None:
    """Return the label of a point, on the side with more room, at the nearest free place above.

    If there is none it is below; None if the column of labels is full.
    """
    x += 14 if is_right else -14
    lowest = HEIGHT - BOTTOM
    y = min(max(y - 7, TOP + 12), lowest)
    above = (y - k * LABEL_HEIGHT for k in range(int((y - TOP - 12) / LABEL_HEIGHT) + 1))
    below = (y + k * LABEL_HEIGHT for k in range(1, int((lowest - y) / LABEL_HEIGHT) + 1))
    for place in (*above, *below):
        if not any(is_near(one, x, place) for one in others):
            return Text(x, place, text, "tick", "start" if is_right else "end")
    return None


def is_near(label: Text, x: float, y: float) -> bool:
    """Return whether a label at a place would cover another one."""
    return abs(label.y - y) < LABEL_HEIGHT and abs(label.x - x) < LABEL_WIDTH


def draw_ledger(ledger: LedgerPlan) -> Figure:
    """Return what all releases add up to as a stair, with the limit and a forecast."""
    title = "The ledger: what all releases add up to"
    rows = tuple(
        (
            step.release_id,
            step.day,
            format_ln_gamma(step.ln_total),
            "charged" if step.is_charged else "not charged",
        )
        for step in ledger.steps
    )
    columns = ("release", "date", "gamma so far", "entry")
    legend: list[LegendItem] = [(Line(((1, 7), (19, 7)), "stair"), "so far")]
    forecast = forecast_totals(ledger)
    if len(forecast) > 1:
        legend.append((Line(((1, 7), (19, 7)), "forecast"), "further releases like the last one"))
    if ledger.ln_limit is not None:
        legend.append(LIMIT_LINE)
    drawings = draw_both_widths(lambda width: draw_stair(title, width, ledger, forecast))
    return Figure(title, tuple(legend), drawings, columns, rows, describe_room(ledger))


def forecast_totals(ledger: LedgerPlan) -> list[float]:
    """Return ln gamma after the last release and after some more like it, up to the limit."""
    last = ledger.steps[-1].ln_total
    if last is None or not ledger.ln_next:
        return []
    count = MAX_FORECAST if ledger.room is None else min(MAX_FORECAST, ledger.room + 1)
    return [last + ledger.ln_next * step for step in range(count + 1)]


def describe_room(ledger: LedgerPlan) -> str:
    """Return in words how much room the ledger has."""
    unit = "Gamma is the factor by which all releases together can change the odds about the most "
    unit += "exposed record. "
    if ledger.ln_limit is None:
        return f"{unit}No limit is set on it."
    limit = f"The limit is {format_ln_gamma(ledger.ln_limit)}. "
    if ledger.room is None:
        return f"{unit}{limit}How many more releases fit is not known."
    times = "1 more release fits" if ledger.room == 1 else f"{ledger.room:,} more releases fit"
    return f"{unit}{limit}{times}, if each redraws the most exposed record as the last one did."


def draw_stair(title: str, width: float, ledger: LedgerPlan, forecast: list[float]) -> Drawing:
    """Return one width of the ledger; a balance without a bound is drawn at the upper end."""
    height = 220.0
    known = [x for x in (*(step.ln_total for step in ledger.steps), ledger.ln_limit) if x]
    top = 1.1 * max([*known, *forecast], default=1.0)
    count = len(ledger.steps) + max(0, len(forecast) - 1)
    across = Scale(0.0, float(max(count, 1)), LEFT + 14, width - RIGHT)
    up = Scale(0.0, top, height - BOTTOM, TOP)
    drawing = Drawing(title, width, height)
    decades = int(top / math.log(10))
    for decade in range(0, decades + 1, 1 + decades // 6):
        ln_gamma = decade * math.log(10)
        ends = across.start, width - RIGHT
        draw_grid_row(drawing, up.place(ln_gamma), ends, format_ln_gamma(ln_gamma))
    totals = [top if step.ln_total is None else step.ln_total for step in ledger.steps]
    drawing.add(Line(build_stair(across, up, totals, 0), "stair"))
    if len(forecast) > 1:
        drawing.add(Line(build_stair(across, up, forecast, len(totals) - 1), "forecast"))
    if ledger.ln_limit is not None:
        y = up.place(ledger.ln_limit)
        drawing.add(Line(((across.start, y), (width - RIGHT, y)), "limit-line"))
    every = math.ceil(LABEL_WIDTH * count / (across.end - across.start))
    for place, ledger_step in enumerate(ledger.steps):
        if place % every == 0:
            x = across.place(place + 0.5)
            text = ledger_step.release_id
            drawing.add(Text(x, height - BOTTOM + 16, text, "tick", "middle"))
            if ledger_step.ln_total is None:
                drawing.add(Text(x, up.place(top) - 5, "no bound", "tick", "middle"))
    return drawing


def build_stair(
    across: Scale, up: Scale, totals: list[float], start: int
) -> tuple[tuple[float, float], ...]:
    """Return the corners of a stair that begins at a place."""
    return tuple(
        (across.place(start + place + side), up.place(total))
        for place, total in enumerate(totals)
        for side in (0, 1)
    )
