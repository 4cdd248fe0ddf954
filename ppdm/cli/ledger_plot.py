"""The ledger over time as a picture: what was spent, and the limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Any

from ppdm.cli.ledger import gamma, limit_of, scale_of, so_far

Entry = dict[str, Any]
WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 40, 46
BLUE, RED, GREY = "#0072B2", "#D55E00", "#8C8C8C"  # told apart by colour-blind people


def picture(dataset: str, found: Sequence[Entry]) -> str:
    """An SVG of its own; the vertical axis is ln gamma, in which releases add up."""
    title = f"{dataset}: gamma of all releases together, for the record that is worst off"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
        *Frame(found).lines(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class Frame:
    """Where an entry lies on the picture."""

    def __init__(self, found: Sequence[Entry]) -> None:
        self.found = found
        self.most = scale_of(found) * 1.05
        times = [datetime.fromisoformat(entry["happened"]).timestamp() for entry in found]
        span = max(times) - min(times) or 1.0
        room = WIDTH - LEFT - RIGHT
        self.xs = [LEFT + room * (time - min(times)) / span for time in times]

    def y(self, ln_gamma: float | None) -> float:
        share = 1.0 if ln_gamma is None else min(1.0, ln_gamma / self.most)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    def lines(self) -> Iterator[str]:
        yield from self.axes()
        yield from self.steps([so_far(entry) for entry in self.found], BLUE, "spent")
        limits = [limit_of(entry) for entry in self.found]
        if limits[-1] is not None:
            yield from self.steps(limits, RED, "limit")
        for x, entry in zip(self.xs, self.found, strict=True):
            if entry["kind"] == "refused":
                y = self.y(entry["ln_total"])
                yield f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" stroke="{RED}"/>'
        if any(entry["kind"] == "refused" for entry in self.found):
            yield named("x  refused", RED, 120)

    def axes(self) -> Iterator[str]:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" stroke="{GREY}" fill="none"/>'
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            value = share * self.most
            y = self.y(value)
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{gamma(value)}</text>'
        ends = ((self.xs[0], "start", self.found[0]), (self.xs[-1], "end", self.found[-1]))
        for x, anchor, entry in ends:
            day = entry["happened"][:10]
            yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="{anchor}">{day}</text>'

    def steps(self, values: Sequence[float | None], colour: str, name: str) -> Iterator[str]:
        """A figure holds until the next release; without a bound it is at the top."""
        places = [(x, self.y(value)) for x, value in zip(self.xs, values, strict=True)]
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
        path += "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
        path += f"H{WIDTH - RIGHT}"
        yield f'<path d="{path}" stroke="{colour}" stroke-width="2" fill="none"/>'
        yield named(name, colour, 40 if name == "limit" else -40)


def named(name: str, colour: str, right: int) -> str:
    """Below the picture, so far right of its middle."""
    x, y = WIDTH / 2 + right, HEIGHT - BOTTOM + 18
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="{colour}">{name}</text>'
