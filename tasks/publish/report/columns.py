"""Which columns drive the risk: the steward's view of it, and its figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ppdm_core.model.column_risks import ColumnRisk
from tasks.publish.report.drawing import (
    Dot,
    Figure,
    LegendItem,
    Line,
    Mark,
    Scale,
    choose_top,
)
from tasks.publish.report.row_chart import Row, draw_rows
from tasks.publish.report.view import ColumnExposure
from tasks.publish.report.words import choose_base, format_change, format_percent, format_share
from warehouse.stage_facts import ColumnFacts

MAX_DRAWN_COLUMNS = 15
LEGEND: tuple[LegendItem, ...] = (
    (Dot(10, 7, "with"), "found with all columns"),
    (Dot(10, 7, "tenth", "diamond"), "found without the column"),
    (Line(((1, 7), (19, 7)), "interval"), "interval"),
)


def build_columns(facts: ColumnFacts | None, release_id: str) -> ColumnExposure | None:
    """Return what an attacker finds without each column, the largest difference first."""
    if facts is None:
        return None
    if facts.risks is None:
        return ColumnExposure((), 0.0, f"This was not measured. {facts.why}", release_id)
    risks = facts.risks
    lines = tuple(sorted(risks.columns, key=lambda line: (line.rate - risks.rate, line.column)))
    return ColumnExposure(lines, risks.rate, describe_columns(lines, risks.rate, risks.persons))


def describe_columns(lines: Sequence[ColumnRisk], rate: float, persons: int) -> str:
    """Return in words which columns drive the risk."""
    found = format_share(rate, choose_base(rate))
    text = (
        f"An attacker who compares all columns of {persons:,} persons with the release, and takes "
        f"the closest row of each, found {found}."
    )
    count = sum(line.low > 0 for line in lines)
    if not count:
        return f"{text} Without any single column, the difference is too small to be measured."
    which = "1 column" if count == 1 else f"{count} columns"
    return (
        f"{text} Without {which}, the same attacker found measurably fewer: perturb what is at the "
        "top more, or leave it out."
    )


def draw_columns(exposure: ColumnExposure) -> Figure | None:
    """Return the figure of what an attacker finds without each column."""
    if not exposure.lines:
        return None
    title = "Which columns drive the risk"
    drawn = exposure.lines[:MAX_DRAWN_COLUMNS]
    rows = tuple(
        (
            line.column,
            format_percent(line.rate),
            format_percent(exposure.rate - line.rate),
            f"{format_percent(line.low)} to {format_percent(line.high)}",
        )
        for line in exposure.lines
    )
    columns = ("column", "found without it", "fewer than with all", "interval")
    if all(line.low <= 0 for line in exposure.lines):
        return Figure(title, (), (), columns, rows)
    reach = [exposure.rate, *(exposure.rate - line.low for line in drawn)]
    rate = exposure.rate
    marked = [Row(x.column, format_change(rate, x.rate), mark_column(x, rate)) for x in drawn]
    more = len(exposure.lines) - len(drawn)
    note = f"The {len(drawn)} largest differences; the table has all columns." if more else ""
    drawings = draw_rows(title, [("", marked)], "all → without it", choose_top(reach))
    return Figure(title, LEGEND, drawings, columns, rows, note)


def mark_column(line: ColumnRisk, rate: float) -> Callable[[Scale, float], Sequence[Mark]]:
    """Return a function that draws what is found with all columns and without this one."""

    def draw(scale: Scale, y: float) -> list[Mark]:
        ends = [(scale.place(rate - each), y) for each in (line.high, line.low)]
        return [
            Line(tuple(ends), "interval"),
            Dot(scale.place(rate), y, "with"),
            Dot(scale.place(line.rate), y, "tenth", "diamond"),
        ]

    return draw
