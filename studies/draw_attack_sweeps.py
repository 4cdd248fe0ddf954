"""Draw the pictures of attacks.md: scores of attacks over a setting of each method.

    python -m studies.draw_attack_sweeps [METHOD ...]      # from the root of the project

The releases are made from public tables (see studies/public_table_audit.py) and audited as in the
pipeline. Each picture stores its figures as text. All pictures take about ten minutes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.attack_sweeps import ACCURACY, SWEEPS, Point, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "risk"
# Distinguishable with colour blindness; an attack has the same style in all pictures.
RED, BLUE, GREEN, PINK, AMBER = (
    ("#D55E00", "o"),
    ("#0072B2", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
)
STYLES = {
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
MIN_LABEL_GAP = 0.062  # between two labels, as a share of the axis height
METRIC_LABELS = {
    "breach_rate": "recovered",
    "rate": "found",
    "true_positive_rate": "members identified",
    "inference_rate": "inferred above baseline",
    "source_rate": "source identified",
}


def draw_figure(sweep: Sweep, figures: Mapping[str, Sequence[Point | None]]) -> Figure:
    """Return the figure of one sweep."""
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
        points, style = figures[name], STYLES[name.split(".")[0]]
        if any(points):
            draw_attack(axes, sweep.values, points, *style)
            ends[format_label(name)] = (get_last_value(points), style[0])
    if any(figures[ACCURACY]):
        x, Y = select_present(sweep.values, figures[ACCURACY])
        axes.plot(x, Y[:, 0], color="black", linewidth=0.9, zorder=1)
        axes.plot(x, Y[:, 3], color="black", linewidth=0.9, linestyle=":", zorder=1)
        ends["classified by 5 neighbours"] = (get_last_value(figures[ACCURACY]), "black")
    draw_labels(axes, ends)
    return figure


def draw_attack(
    axes: Axes, values: Sequence[float], points: Sequence[Point | None], colour: str, shape: str
) -> None:
    """Draw the values of a score, its interval and its baseline."""
    x, Y = select_present(values, points)
    axes.fill_between(x, Y[:, 1], Y[:, 2], color=colour, alpha=0.16, lw=0)
    axes.plot(x, Y[:, 0], color=colour, marker=shape, markersize=4, linewidth=1.6)
    axes.plot(x, Y[:, 3], color=colour, linewidth=1.0, linestyle=":")


def draw_labels(axes: Axes, ends: Mapping[str, tuple[float, str]]) -> None:
    """Draw labels next to the ends of the lines."""
    names = sorted(ends, key=lambda name: ends[name][0])
    places = spread_labels([ends[name][0] for name in names])
    for name, place in zip(names, places, strict=True):
        at, colour = (1.02, (place + 0.02) / 1.04), ends[name][1]  # the axis goes beyond 0 and 1
        style: dict[str, Any] = {"va": "center", "fontsize": 8, "color": colour}
        axes.annotate(name, at, xycoords="axes fraction", **style)


def spread_labels(heights: Sequence[float]) -> list[float]:
    """Return the rising heights moved up where labels would overlap, then down to stay below 1."""
    places: list[float] = []
    for height in heights:
        places.append(max(height, places[-1] + MIN_LABEL_GAP) if places else height)
    highest = 1.0
    for i in reversed(range(len(places))):
        places[i] = min(places[i], highest)
        highest = places[i] - MIN_LABEL_GAP
    return places


def select_present(values: Sequence[float], points: Sequence[Point | None]) -> tuple[Any, Any]:
    """Return the values and points where the attack applied."""
    pairs = [(x, point) for x, point in zip(values, points, strict=True) if point is not None]
    return np.array([x for x, _ in pairs]), np.array([point for _, point in pairs])


def get_last_value(points: Sequence[Point | None]) -> float:
    """Return the value of the last point that exists."""
    return [point for point in points if point is not None][-1][0]


def format_label(name: str) -> str:
    """Return the label of a score in a picture."""
    attack, metric = name.split(".", 1)
    return f"{attack}: {METRIC_LABELS[metric]}"


def save_figure(
    method: str, figures: Mapping[str, Sequence[Point | None]], folder: Path = PICTURE_FOLDER
) -> Path:
    """Write the picture of a method with its figures as metadata, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{method}.png"
    text = {"Software": None, "Figures": json.dumps(figures)}
    draw_figure(SWEEPS[method], figures).savefig(path, dpi=110, metadata=text)
    return path


def main(methods: Sequence[str]) -> None:
    for method in methods or SWEEPS:
        print(save_figure(method, SWEEPS[method].measure()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
