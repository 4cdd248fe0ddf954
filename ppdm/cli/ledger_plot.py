"""The plot of `ppdm ledger`: what was spent over time, and the limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Any

from ppdm.cli.ledger import find_largest, format_ln_gamma, read_ln_limit, read_total

Entry = dict[str, Any]
WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 40, 46
BLUE, RED, GREY = "#0072B2", "#D55E00", "#8C8C8C"  # distinguishable for colour-blind readers


def draw_ledger(dataset: str, found: Sequence[Entry]) -> str:
    """Return an SVG document; the vertical axis is ln gamma, in which releases add up."""
    title = f"{dataset}: gamma of all releases together, for the most exposed record"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
        *LedgerPlot(found).draw_lines(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class LedgerPlot:
    """The entries and their coordinates."""

    def __init__(self, found: Sequence[Entry]) -> None:
        self.found = found
        self.largest = find_largest(found) * 1.05
        times = [datetime.fromisoformat(entry["happened"]).timestamp() for entry in found]
        span = max(times) - min(times) or 1.0
        room = WIDTH - LEFT - RIGHT
        self.xs = [LEFT + room * (time - min(times)) / span for time in times]

    def y(self, ln_gamma: float | None) -> float:
        share = 1.0 if ln_gamma is None else min(1.0, ln_gamma / self.largest)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    def draw_lines(self) -> Iterator[str]:
        yield from self.draw_axes()
        yield from self.draw_steps([read_total(entry) for entry in self.found], BLUE, "spent")
        limits = [read_ln_limit(entry) for entry in self.found]
        if limits[-1] is not None:
            yield from self.draw_steps(limits, RED, "limit")
        for x, entry in zip(self.xs, self.found, strict=True):
            if entry["kind"] == "refused":
                y = self.y(entry["ln_total"])
                yield f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" stroke="{RED}"/>'
        if any(entry["kind"] == "refused" for entry in self.found):
            yield draw_name("x  refused", RED, 120)

    def draw_axes(self) -> Iterator[str]:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" stroke="{GREY}" fill="none"/>'
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            value = share * self.largest
            y, name = self.y(value), format_ln_gamma(value)
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
        ends = ((self.xs[0], "start", self.found[0]), (self.xs[-1], "end", self.found[-1]))
        for x, anchor, entry in ends:
            day = entry["happened"][:10]
            yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="{anchor}">{day}</text>'

    def draw_steps(self, values: Sequence[float | None], colour: str, name: str) -> Iterator[str]:
        """Yield a step line and its name; None is at the top."""
        places = [(x, self.y(value)) for x, value in zip(self.xs, values, strict=True)]
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
        path += "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
        path += f"H{WIDTH - RIGHT}"
        yield f'<path d="{path}" stroke="{colour}" stroke-width="2" fill="none"/>'
        yield draw_name(name, colour, 40 if name == "limit" else -40)


def draw_name(name: str, colour: str, offset: int) -> str:
    """Return a name below the plot, ``offset`` to the right of its middle."""
    x, y = WIDTH / 2 + offset, HEIGHT - BOTTOM + 18
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="{colour}">{name}</text>'
