"""The figures of a report, drawn from a view alone; each with a table of the same values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tasks.publish.report.drawing import (
    INTERVAL,
    LIMIT,
    WIDE,
    WITHOUT,
    Bar,
    Dot,
    Drawing,
    Figure,
    LegendItem,
    Line,
    Mark,
    Scale,
    Text,
    choose_top,
    draw_both_widths,
    mark_limit,
)
from tasks.publish.report.row_chart import Row, draw_rows
from tasks.publish.report.view import DataAccount, ReportView, RiskLine, UtilityLine
from tasks.publish.report.words import format_change, format_percent

MAX_EXPOSED = 8  # lines in the figure of who is most exposed


def mark_risk(line: RiskLine) -> Callable[[Scale, float], Sequence[Mark]]:
    """Return a function that draws interval, baseline, value and limit of a risk."""

    def draw(scale: Scale, y: float) -> list[Mark]:
        ends = (scale.place(line.low), y), (scale.place(line.high), y)
        return [
            Line(ends, "interval"),
            *mark_limit(scale, y, line.limit),
            Dot(scale.place(line.baseline), y, "without"),
            Dot(scale.place(line.value), y, "broken" if line.outcome == "FAIL" else "with"),
        ]

    return draw


def draw_risks(view: ReportView) -> Figure | None:
    """Return the forest plot of what attackers gain."""
    lines = view.risk_lines
    if not lines:
        return None
    reach = [max(x.high, x.value, x.baseline, x.limit or 0.0) for x in lines]
    groups = [
        (
            group.title,
            [Row(x.title, format_change(x.baseline, x.value), mark_risk(x)) for x in group.lines],
        )
        for group in view.risks
    ]
    title = "What attackers gain"
    legend = [WITHOUT, (Dot(10, 7, "with"), "with the release"), INTERVAL, LIMIT]
    if any(line.outcome == "FAIL" for line in lines):
        legend.insert(2, (Dot(10, 7, "broken"), "limit broken"))
    rows = tuple(
        (
            group.title,
            line.title,
            format_percent(line.baseline),
            format_percent(line.value),
            f"{format_percent(line.low)} to {format_percent(line.high)}",
            format_percent(line.limit) or "none",
        )
        for group in view.risks
        for line in group.lines
    )
    columns = ("the attacker wants to", "the attacker", "without", "with", "interval", "limit")
    drawings = draw_rows(title, groups, "without → with", choose_top(reach))
    return Figure(title, tuple(legend), drawings, columns, rows)


def find_most_exposed(line: RiskLine) -> float:
    """Return the risk of the tenth or the group that is most exposed."""
    return max(each for each in line.exposures[1:] if each is not None)


def draw_exposure(view: ReportView) -> Figure | None:
    """Return the figure of who is more exposed than others."""
    lines = [x for x in view.risk_lines if any(each is not None for each in x.exposures[1:])]
    if not lines or view.is_rounded:
        return None
    lines.sort(key=lambda x: (x.value - find_most_exposed(x), x.name))
    drawn = lines[:MAX_EXPOSED]
    title = "Who is most exposed"
    rows = tuple((x.title, *map(format_percent, x.exposures), x.group or "") for x in lines)
    columns = ("the attacker", *(meaning for _, meaning in EXPOSURE_LEGEND), "which group")
    by_symbol = zip(EXPOSURE_LEGEND, zip(*(x.exposures for x in drawn), strict=True), strict=True)
    legend = tuple(item for item, values in by_symbol if any(v is not None for v in values))
    note = (
        f"The {len(drawn)} largest differences; the table has all." if lines[len(drawn) :] else ""
    )
    reach = [each for x in drawn for each in x.exposures if each is not None]
    marked = [
        Row(x.title, format_change(x.value, find_most_exposed(x)), mark_exposure(x)) for x in drawn
    ]
    drawings = draw_rows(title, [("", marked)], "all → most", choose_top(reach))
    return Figure(title, legend, drawings, columns, rows, note)


def mark_exposure(line: RiskLine) -> Callable[[Scale, float], Sequence[Mark]]:
    """Return a function that draws the risk of all and of the most exposed."""

    def draw(scale: Scale, y: float) -> list[Mark]:
        xs = [scale.place(value) for value in line.exposures if value is not None]
        marks: list[Mark] = [Line(((min(xs), y), (max(xs), y)), "span")]
        for value, (symbol, _) in zip(line.exposures, EXPOSURE_LEGEND, strict=True):
            if value is not None and isinstance(symbol, Dot):
                marks.append(Dot(scale.place(value), y, symbol.style, symbol.form))
        return marks

    return draw


EXPOSURE_LEGEND: tuple[LegendItem, ...] = (
    (Dot(10, 7, "with"), "all"),
    (Dot(10, 7, "tenth", "diamond"), "most isolated tenth"),
    (Dot(10, 7, "surest", "triangle"), "tenth that the attacker is surest of"),
    (Dot(10, 7, "group", "square"), "most exposed group"),
)


def mark_utility(line: UtilityLine) -> Callable[[Scale, float], Sequence[Mark]]:
    """Return a function that draws baseline, release, original and limit of a use."""

    def draw(scale: Scale, y: float) -> list[Mark]:
        ends = [scale.place(each) for each in (line.baseline, line.original, line.value)]
        return [
            Line(((min(ends), y), (max(ends), y)), "span"),
            Line(((scale.place(line.low), y), (scale.place(line.high), y)), "interval"),
            *mark_limit(scale, y, line.limit),
            Dot(scale.place(line.baseline), y, "without"),
            Dot(scale.place(line.original), y, "original", "diamond"),
            Dot(scale.place(line.value), y, "kept"),
        ]

    return draw


def draw_utility(view: ReportView) -> Figure | None:
    """Return the dumbbell plot of what recipients keep."""
    if not view.utility:
        return None
    title = "What recipients keep"
    legend: tuple[LegendItem, ...] = (
        WITHOUT,
        (Dot(10, 7, "kept"), "with the release"),
        (Dot(10, 7, "original", "diamond"), "original table"),
        INTERVAL,
        LIMIT,
    )
    rows = tuple(
        (
            line.title,
            format_percent(line.baseline),
            format_percent(line.value),
            f"{format_percent(line.low)} to {format_percent(line.high)}",
            format_percent(line.original),
            "" if line.limit is None else f"at least {format_percent(line.limit)}",
        )
        for line in view.utility
    )
    columns = ("use", "without", "with", "interval", "original", "limit")
    drawn = [
        Row(line.title, format_change(line.baseline, line.value), mark_utility(line))
        for line in view.utility
    ]
    drawings = draw_rows(title, [("", drawn)], "without → with", 1.0)
    return Figure(title, legend, drawings, columns, rows)


def draw_account(account: DataAccount) -> Figure:
    """Return the bars of records given, dropped, set aside and released."""
    most = max(line.count for line in account.records) or 1
    title = "Records"

    def draw(width: float) -> Drawing:
        start = 130.0 if width == WIDE else 110.0
        scale = Scale(0.0, float(most), start, width - 70.0)
        drawing = Drawing(title, width, 30.0 * len(account.records) + 6)
        for place, line in enumerate(account.records):
            y = 4.0 + 30.0 * place
            x = scale.place(float(line.count))
            style = "kept" if line.what == account.records[-1].what else "given"
            drawing.add(Text(start - 10, y + 16, line.what, "label", "end"))
            drawing.add(Bar(start, y, max(x - start, 1.0), 22.0, f"bar {style}"))
            drawing.add(Text(x + 6, y + 16, line.shown, "label"))
        return drawing

    rows = tuple((line.what, line.shown, line.why) for line in account.records)
    return Figure(title, (), draw_both_widths(draw), ("records", "count", "why"), rows)
