"""Marks of a vector drawing: the template writes each as one SVG element.

Marks have classes in place of colours, so that the style sheet of the page decides about light,
dark and print. Coordinates follow from the drawn values alone: the same view gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

WIDE, NARROW = 760.0, 360.0  # widths of a figure on a screen and on a phone, in units of the SVG
LETTER_WIDTH, WIDE_LETTER = 6.9, 8.0  # of a letter in a sentence and in a name, about
TICKS = 5


def format_points(points: Sequence[tuple[float, float]]) -> str:
    """Return points as an attribute of SVG."""
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


@dataclass(frozen=True)
class Line:
    """A straight or broken line."""

    points: tuple[tuple[float, float], ...]
    style: str
    shape: Literal["line"] = "line"

    @property
    def path(self) -> str:
        return format_points(self.points)


@dataclass(frozen=True)
class Dot:
    """A symbol at a point; its form says the same as its colour."""

    x: float
    y: float
    style: str
    form: Literal["circle", "diamond", "triangle", "square", "cross"] = "circle"
    radius: float = 5.0
    shape: Literal["dot"] = "dot"

    @property
    def corners(self) -> str:
        """The corners of a symbol that is no circle."""
        x, y, r = self.x, self.y, self.radius
        forms = {
            "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
            "triangle": ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
            "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
            "cross": (
                *((-1, -0.6), (-0.6, -1), (0, -0.4), (0.6, -1), (1, -0.6), (0.4, 0)),
                *((1, 0.6), (0.6, 1), (0, 0.4), (-0.6, 1), (-1, 0.6), (-0.4, 0)),
            ),
        }
        return " ".join(f"{x + r * dx:.2f},{y + r * dy:.2f}" for dx, dy in forms[self.form])


@dataclass(frozen=True)
class Bar:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    style: str
    shape: Literal["bar"] = "bar"


@dataclass(frozen=True)
class Area:
    """A closed surface."""

    points: tuple[tuple[float, float], ...]
    style: str
    shape: Literal["area"] = "area"

    @property
    def path(self) -> str:
        return format_points(self.points)


@dataclass(frozen=True)
class Text:
    """A text on one line."""

    x: float
    y: float
    text: str
    style: str = "label"
    anchor: Literal["start", "middle", "end"] = "start"
    shape: Literal["text"] = "text"


Mark = Line | Dot | Bar | Area | Text
LegendItem = tuple[Mark, str]  # symbol within 20 x 14, meaning


@dataclass(frozen=True)
class Scale:
    """A linear map from values to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the coordinate of a value; one outside is drawn at the end."""
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


@dataclass
class Drawing:
    """A figure in one width."""

    title: str
    width: float
    height: float
    marks: list[Mark] = field(default_factory=list)

    def add(self, *marks: Mark) -> None:
        self.marks.extend(marks)

    @property
    def is_narrow(self) -> bool:
        return self.width == NARROW


@dataclass(frozen=True)
class Figure:
    """A figure in two widths, with the table of what it shows."""

    title: str
    legend: tuple[LegendItem, ...]
    drawings: tuple[Drawing, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


WITHOUT: LegendItem = (Dot(10, 7, "without"), "without the release")
INTERVAL: LegendItem = (Line(((1, 7), (19, 7)), "interval"), "interval")
LIMIT: LegendItem = (Line(((10, 0), (10, 14)), "limit"), "limit")


def draw_both_widths(draw: Callable[[float], Drawing]) -> tuple[Drawing, ...]:
    """Return a drawing for screens and one for phones."""
    return draw(WIDE), draw(NARROW)


def choose_top(values: Sequence[float]) -> float:
    """Return the end of an axis of shares: the first of a few round ones that holds all values."""
    largest = max(values, default=1.0)
    return next((top for top in (0.05, 0.1, 0.25, 0.5) if largest <= top), 1.0)


def draw_share_axis(drawing: Drawing, scale: Scale, top: float, bottom: float) -> None:
    """Add grid lines and labels of an axis of shares."""
    for step in range(TICKS + 1):
        value = scale.low + (scale.high - scale.low) * step / TICKS
        draw_grid_column(drawing, scale.place(value), (top, bottom), f"{100 * value:.3g}")
    text = "in 100"
    drawing.add(Text((scale.start + scale.end) / 2, bottom + 32, text, "tick", "middle"))


def draw_grid_column(drawing: Drawing, x: float, ends: tuple[float, float], text: str) -> None:
    """Add an upright grid line with its label below."""
    drawing.add(Line(((x, ends[0]), (x, ends[1])), "grid"))
    drawing.add(Text(x, ends[1] + 16, text, "tick", "middle"))


def draw_grid_row(drawing: Drawing, y: float, ends: tuple[float, float], text: str) -> None:
    """Add a level grid line with its label on the left."""
    drawing.add(Line(((ends[0], y), (ends[1], y)), "grid"))
    drawing.add(Text(ends[0] - 8, y + 4, text, "tick", "end"))


def mark_limit(scale: Scale, y: float, limit: float | None) -> list[Mark]:
    """Return the mark of a limit on a line of a figure, if there is a limit."""
    if limit is None:
        return []
    x = scale.place(limit)
    return [Line(((x, y - 9), (x, y + 9)), "limit")]


def shorten_name(name: str, width: float) -> str:
    """Return the name of a column cut in the middle: many names differ only at their end."""
    letters = max(int(width / WIDE_LETTER), 3)
    if len(name) <= letters:
        return name
    end = letters // 2
    return f"{name[: letters - end - 1]}…{name[-end:]}"


def shorten(text: str, width: float) -> str:
    """Return a text cut to about a width."""
    letters = int(width / LETTER_WIDTH)
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"
