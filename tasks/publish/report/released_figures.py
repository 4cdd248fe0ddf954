"""Figures of the released table alone: a small histogram of each column, and correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tasks.publish.report.drawing import (
    WIDE,
    Area,
    Bar,
    Drawing,
    Figure,
    LegendItem,
    Line,
    Text,
    draw_both_widths,
    shorten,
    shorten_name,
)
from warehouse.publishing.released_profile import (
    SMALL_COUNT,
    CategoryProfile,
    NumberProfile,
    ReleasedProfile,
)

WIDE_PLOTS, NARROW_PLOTS = 4, 2  # histograms in a row
PLOT_HEIGHT, BARS_TOP, BARS_BOTTOM = 118.0, 22.0, 88.0
GAP = 14.0  # between histograms
CELL = 26.0  # largest side of a cell of the correlations
NAMES, NARROW_NAMES = 200.0, 130.0  # width of the names at the correlations
MAX_NUMBERED = 16  # columns whose correlations are written into the cells
MAX_NARROW = 12  # columns in the correlations on a phone
STEPS = 5  # shades of a colour
FEW, FEWER = f"<{SMALL_COUNT}", f"fewer than {SMALL_COUNT}"
SHADES: tuple[LegendItem, ...] = (
    (Bar(0, 0, 20, 14, f"minus shade{STEPS}"), "-1"),
    (Bar(0, 0, 20, 14, "minus shade2"), "-0.4"),
    (Bar(0, 0, 20, 14, "plus shade0"), "0"),
    (Bar(0, 0, 20, 14, "plus shade2"), "0.4"),
    (Bar(0, 0, 20, 14, f"plus shade{STEPS}"), "1"),
)

ColumnProfile = NumberProfile | CategoryProfile


def draw_distributions(profile: ReleasedProfile) -> Figure:
    """Return a small histogram of each described column."""
    columns: list[ColumnProfile] = [*profile.numbers, *profile.categories]
    title = "Distributions of the released columns"

    def draw(width: float) -> Drawing:
        across = WIDE_PLOTS if width == WIDE else NARROW_PLOTS
        height = PLOT_HEIGHT * math.ceil(len(columns) / across)
        drawing = Drawing(title, width, height)
        size = (width - GAP * (across - 1)) / across
        for place, column in enumerate(columns):
            row, at = divmod(place, across)
            draw_histogram(drawing, column, at * (size + GAP), row * PLOT_HEIGHT, size)
        return drawing

    rows = tuple((column.name, *describe_column(column)) for column in columns)
    names = ("column", "mean", "standard deviation", f"rows in each bar ({FEW}: {FEWER})")
    more = profile.columns - len(columns)
    left_out = f" {more:,} further columns are in the file." if more else ""
    note = (
        f"{profile.rows:,} rows. A bar of {FEWER} rows is drawn as {SMALL_COUNT}. The outer bars "
        f"of a number hold all values beyond them.{left_out}"
    )
    return Figure(title, (), draw_both_widths(draw), names, rows, note)


def draw_histogram(
    drawing: Drawing, column: ColumnProfile, x: float, y: float, width: float
) -> None:
    """Add one histogram with its name above and the ends of its axis below."""
    counts = [SMALL_COUNT if count is None else count for count in column.counts]
    gap = 0.0 if isinstance(column, NumberProfile) else 0.15
    step, base = width / len(counts), y + BARS_BOTTOM
    scale = (BARS_BOTTOM - BARS_TOP) / max(counts)
    corners = [(x, base)]
    for place, count in enumerate(counts):
        left, right = x + step * (place + gap / 2), x + step * (place + 1 - gap / 2)
        height = base - scale * count
        corners += [(left, base), (left, height), (right, height), (right, base)]
    drawing.add(Text(x, y + 14, shorten_name(column.name, width), "label"))
    drawing.add(Area(tuple(corners), "bars"))
    drawing.add(Line(((x, base), (x + width, base)), "axis"))
    low, high = name_ends(column)
    drawing.add(Text(x, base + 16, shorten(low, width / 2), "edge"))
    if high:
        drawing.add(Text(x + width, base + 16, shorten(high, width / 2), "edge", "end"))


def name_ends(column: ColumnProfile) -> tuple[str, str]:
    """Return what is written below the first and the last bar."""
    if isinstance(column, NumberProfile):
        return format_number(column.edges[0]), format_number(column.edges[-1])
    return column.categories[0], "".join(column.categories[1:][-1:])


def describe_column(column: ColumnProfile) -> tuple[str, str, str]:
    """Return mean, standard deviation and counts of a column as text."""
    shown = [FEW if count is None else f"{count:,}" for count in column.counts]
    if isinstance(column, CategoryProfile):
        pairs = zip(column.categories, shown, strict=True)
        return "", "", "; ".join(f"{name}: {count}" for name, count in pairs)
    ends = " to ".join(name_ends(column))
    return (
        format_number(column.mean),
        format_number(column.deviation),
        f"{ends}: {'; '.join(shown)}",
    )


def format_number(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-")


def draw_correlations(profile: ReleasedProfile) -> Figure | None:
    """Return the heat map of the correlations of the described numeric columns."""
    names = [column.name for column in profile.numbers]
    if len(names) < 2:
        return None
    title = "Correlations of the released columns"

    def draw(width: float) -> Drawing:
        return draw_heat_map(title, width, names, profile.correlations)

    rows = tuple(
        (
            f"{place + 1} {name}",
            "; ".join(f"{at + 1}: {value:.2f}" for at, value in enumerate(line[:place])),
        )
        for place, (name, line) in enumerate(zip(names, profile.correlations, strict=True))
    )
    columns = ("column", "correlation with the columns before it")
    is_cut = len(names) > MAX_NARROW
    note = f"A narrow screen shows the first {MAX_NARROW} columns." if is_cut else ""
    return Figure(title, SHADES, draw_both_widths(draw), columns, rows, note)


def draw_heat_map(
    title: str, width: float, names: Sequence[str], correlations: Sequence[Sequence[float]]
) -> Drawing:
    """Return the lower half of the matrix: names on the left, numbers of the columns below."""
    names = names if width == WIDE else names[:MAX_NARROW]
    count, left = len(names), NAMES if width == WIDE else NARROW_NAMES
    side = min(CELL if count > MAX_NUMBERED else 1.4 * CELL, (width - left) / count)
    drawing = Drawing(title, width, side * count + 22)
    is_numbered = width == WIDE and count <= MAX_NUMBERED
    for row, name in enumerate(names):
        middle = side * (row + 0.5) + 4
        label = f"{row + 1} {shorten_name(name, left - 32)}"
        drawing.add(Text(left - 8, middle, label, "label", "end"))
        drawing.add(
            Text(left + side * (row + 0.5), side * count + 15, f"{row + 1}", "edge", "middle")
        )
        for column in range(row):
            value, x = correlations[row][column], left + side * column
            drawing.add(Bar(x, side * row, side - 1, side - 1, choose_shade(value)))
            if is_numbered:
                text = f"{value:.1f}".replace("-0.0", "0.0")
                drawing.add(Text(x + side / 2, middle, text, "cell", "middle"))
    return drawing


def choose_shade(correlation: float) -> str:
    """Return the classes of a cell: the sign, and the size in steps."""
    size = round(abs(correlation) * STEPS)
    return f"{'minus' if correlation < 0 and size else 'plus'} shade{size}"
