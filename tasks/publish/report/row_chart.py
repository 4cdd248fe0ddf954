"""A chart of labelled rows on one axis of shares; figures on the right repeat the marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.publish.report.drawing import (
    WIDE,
    Drawing,
    Mark,
    Scale,
    Text,
    draw_both_widths,
    draw_share_axis,
    shorten,
)

LABELS = 344.0  # width of the labels on a screen
FIGURES = 92.0  # width of the figures
EDGE = 24.0
WIDE_ROW, NARROW_ROW = 26.0, 42.0
HEAD = 30.0  # height of the head of a group
TOP = 22.0  # height above the rows
AXIS = 44.0  # height below the rows


@dataclass(frozen=True)
class Row:
    """One row of a chart."""

    label: str
    figures: str  # what the marks show, in 100
    make_marks: Callable[[Scale, float], Sequence[Mark]]  # of a scale and a height


def draw_rows(
    title: str, groups: Sequence[tuple[str, Sequence[Row]]], figures: str, top: float
) -> tuple[Drawing, ...]:
    """Return a chart in both widths.

    ``groups`` have a head, which may be empty. ``figures`` is the head of the figures, and ``top``
    the end of the axis.
    """
    count = sum(len(rows) for _, rows in groups)
    heads = sum(bool(head) for head, _ in groups)

    def draw(width: float) -> Drawing:
        is_wide = width == WIDE
        height = WIDE_ROW if is_wide else NARROW_ROW
        bottom = TOP + height * count + HEAD * heads
        drawing = Drawing(title, width, bottom + AXIS)
        scale = Scale(0.0, top, LABELS if is_wide else EDGE, width - EDGE - FIGURES)
        draw_share_axis(drawing, scale, TOP, bottom)
        drawing.add(Text(width - 4, TOP - 8, figures, "tick", "end"))
        y = TOP
        for head, rows in groups:
            if head:
                drawing.add(Text(4.0, y + 22, head, "head"))
                y += HEAD
            for row in rows:
                draw_row(drawing, row, scale, y)
                y += height
        return drawing

    return draw_both_widths(draw)


def draw_row(drawing: Drawing, row: Row, scale: Scale, y: float) -> None:
    """Add one row: on a phone, the label is above the marks."""
    width, middle = drawing.width, y + (30.0 if drawing.is_narrow else WIDE_ROW / 2)
    if drawing.is_narrow:
        drawing.add(Text(4.0, y + 15, shorten(row.label, width - 8), "label"))
    else:
        drawing.add(Text(LABELS - 14, middle + 4, shorten(row.label, LABELS - 24), "label", "end"))
    drawing.add(Text(width - 4, middle + 4, row.figures, "value", "end"))
    drawing.add(*row.make_marks(scale, middle))
