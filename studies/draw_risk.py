"""Draws the pictures of attacks.md: what attacks get as the noise of a method grows.

    python -m studies.draw_risk [METHOD ...]      # from the root of the project

The releases are real ones of public tables (see studies/risk.py), audited as any other. Each file
also carries the figures that it shows, as text. All of them take about ten minutes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.risk_sweeps import ACCURACY, SWEEPS, Point, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "risk"
# Told apart by colour-blind people; an attack looks the same in all pictures.
RED, BLUE, GREEN, PINK, AMBER = (
    ("#D55E00", "o"),
    ("#0072B2", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
)
LOOKS = {
    "record_linkage": RED,
    "known_pairs": BLUE,
    "shrinkage": BLUE,
    "source_record": BLUE,
    "known_records": GREEN,
    "column_order": GREEN,
    "kernel_support": GREEN,
    "trilateration": PINK,
    "attribute_inference": PINK,
    "membership": AMBER,
    "known_sample_pca": AMBER,
}
GREY, DARK = "#8C8C8C", "#404040"
GAP = 0.062  # between two labels, as a share of the axis
WORDS = {
    "breach_rate": "recovered",
    "rate": "found",
    "true_positive_rate": "members told",
    "inference_rate": "inferred beyond others",
    "source_rate": "source named",
}


def draw(sweep: Sweep, figures: Mapping[str, Sequence[Point | None]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.3), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=DARK, labelsize=8)
    axes.set(ylim=(-0.02, 1.02), xlabel=sweep.axis, ylabel="share")
    if sweep.is_log:
        axes.set_xscale("log")
    axes.set_xticks(sweep.values, [f"{value:g}" for value in sweep.values], minor=False)
    axes.minorticks_off()
    ends: dict[str, tuple[float, str]] = {}
    for name in sweep.scores:
        points, look = figures[name], LOOKS[name.split(".")[0]]
        if any(points):
            draw_attack(axes, sweep.values, points, *look)
            ends[in_words(name)] = (last(points), look[0])
    if any(figures[ACCURACY]):
        x, Y = present(sweep.values, figures[ACCURACY])
        axes.plot(x, Y[:, 0], color="black", linewidth=0.9, zorder=1)
        axes.plot(x, Y[:, 3], color="black", linewidth=0.9, linestyle=":", zorder=1)
        ends["classified by 5 neighbours"] = (last(figures[ACCURACY]), "black")
    draw_labels(axes, ends)
    return figure


def draw_attack(
    axes: Axes, values: Sequence[float], points: Sequence[Point | None], colour: str, shape: str
) -> None:
    x, Y = present(values, points)
    axes.fill_between(x, Y[:, 1], Y[:, 2], color=colour, alpha=0.16, lw=0)
    axes.plot(x, Y[:, 0], color=colour, marker=shape, markersize=4, linewidth=1.6)
    axes.plot(x, Y[:, 3], color=colour, linewidth=1.0, linestyle=":")


def draw_labels(axes: Axes, ends: Mapping[str, tuple[float, str]]) -> None:
    """Beside the ends of the lines."""
    names = sorted(ends, key=lambda name: ends[name][0])
    places = apart([ends[name][0] for name in names])
    for name, place in zip(names, places, strict=True):
        at, colour = (1.02, (place + 0.02) / 1.04), ends[name][1]  # the axis goes beyond 0 and 1
        style: dict[str, Any] = {"va": "center", "fontsize": 8, "color": colour}
        axes.annotate(name, at, xycoords="axes fraction", **style)


def apart(heights: Sequence[float]) -> list[float]:
    """Rising heights, pushed up where labels would overlap, and down again from the top."""
    places: list[float] = []
    for height in heights:
        places.append(max(height, places[-1] + GAP) if places else height)
    highest = 1.0
    for i in reversed(range(len(places))):
        places[i] = min(places[i], highest)
        highest = places[i] - GAP
    return places


def present(values: Sequence[float], points: Sequence[Point | None]) -> tuple[Any, Any]:
    pairs = [(x, point) for x, point in zip(values, points, strict=True) if point is not None]
    return np.array([x for x, _ in pairs]), np.array([point for _, point in pairs])


def last(points: Sequence[Point | None]) -> float:
    return [point for point in points if point is not None][-1][0]


def in_words(name: str) -> str:
    attack, metric = name.split(".", 1)
    return f"{attack}: {WORDS[metric]}"


def save(method: str, figures: Mapping[str, Sequence[Point | None]], folder: Path = FOLDER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{method}.png"
    text = {"Software": None, "Figures": json.dumps(figures)}
    draw(SWEEPS[method], figures).savefig(path, dpi=110, metadata=text)
    return path


def main(methods: Sequence[str]) -> None:
    for method in methods or SWEEPS:
        print(save(method, SWEEPS[method].figures()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
