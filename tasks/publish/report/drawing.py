"""Marks of a vector drawing: the template writes each as one SVG element.

Marks have classes in place of colours, so that the style sheet of the page decides about light,
dark and print. Coordinates follow from the drawn values alone: the same view gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

WIDE, NARROW = 760.0, 360.0  # widths of a figure on a screen and on a phone, in units of the SVG
LETTER_WIDTH = 6.9  # of a letter, about
TICKS = 5


@dataclass(frozen=True)
class Line:
    """A straight or broken line."""

    points: tuple[tuple[float, float], ...]
    style: str
    shape: Literal["line"] = "line"

    @property
    def path(self) -> str:
        return " ".join(f"{x:.2f},{y:.2f}" for x, y in self.points)


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
class Text:
    """A text on one line."""

    x: float
    y: float
    text: str
    style: str = "label"
    anchor: Literal["start", "middle", "end"] = "start"
    shape: Literal["text"] = "text"


Mark = Line | Dot | Bar | Text


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
    legend: tuple[tuple[Mark, str], ...]  # symbol within 20 x 14, meaning
    drawings: tuple[Drawing, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def choose_top(values: Sequence[float]) -> float:
    """Return the end of an axis of shares: the first of a few round ones that holds all values."""
    largest = max(values, default=1.0)
    return next((top for top in (0.05, 0.1, 0.25, 0.5) if largest <= top), 1.0)


def draw_share_axis(drawing: Drawing, scale: Scale, top: float, bottom: float) -> None:
    """Add grid lines and labels of an axis of shares."""
    for step in range(TICKS + 1):
        value = scale.low + (scale.high - scale.low) * step / TICKS
        x = scale.place(value)
        drawing.add(Line(((x, top), (x, bottom)), "grid"))
        drawing.add(Text(x, bottom + 16, f"{100 * value:.3g}", "tick", "middle"))
    text = "in 100"
    drawing.add(Text((scale.start + scale.end) / 2, bottom + 32, text, "tick", "middle"))


def shorten(text: str, width: float) -> str:
    """Return a text cut to about a width."""
    letters = int(width / LETTER_WIDTH)
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"
