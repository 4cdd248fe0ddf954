"""Our pictures beside the figures of the papers, drawn from our results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.reproduction.decision import compute_interval
from studies.reproduction.registry import Claim
from studies.reproduction.results import Quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")  # for colour-blind readers
MARKERS = ("o", "s", "^", "D", "v")
GREY, DARK = "#BDBDBD", "#404040"
MAX_COLUMNS = 4
Results = Mapping[str, Quantities]  # quantities by table


@dataclass(frozen=True)
class Picture:
    """Series over an axis, one panel for each table."""

    name: str
    place: str  # the figure of the paper
    title: str
    experiment: str
    series: Mapping[str, str]  # label -> name of the quantity before "/axis=value"
    axis: str  # name before "=" in quantities
    label: str = ""  # of the axis
    is_log: bool = False

    @property
    def paper(self) -> str:
        return self.place.split(" ")[0]


PICTURES = (
    Picture(
        "p0_amplification",
        "P0 figure 6a",
        "Amplification measured from the noise of releases",
        "measured_noise",
        {"measured": "measured gamma"},
        "b",
        "noise b",
        is_log=True,
    ),
    Picture(
        "p0_accuracy",
        "P0 figure 9",
        "Accuracy of three classifiers on components with noise",
        "laplace_mining",
        {"radius": "accuracy radius", "best k": "accuracy best k", "k = 5": "accuracy k 5"},
        "b",
        "noise b",
    ),
    Picture(
        "p0_privacy",
        "P0 figure 8",
        "Average privacy before and after filtering",
        "laplace_privacy",
        {
            "no filtering": "privacy unfiltered",
            "filtered": "privacy filtered",
            "no components, filtered": "privacy without components, filtered",
        },
        "b",
        "noise b",
    ),
    Picture(
        "p0_points",
        "P0 figure 5",
        "Accuracy over three settings, from little to much noise",
        "method_points",
        {
            "radius": "accuracy of radius",
            "projection": "accuracy of projection",
            "uniform": "accuracy of uniform",
            "normal": "accuracy of normal",
        },
        "setting",
        "setting",
    ),
    Picture(
        "p0_point_privacy",
        "P0 figure 5",
        "Average privacy over the same settings",
        "method_points",
        {
            "radius": "privacy of radius",
            "projection": "privacy of projection",
            "uniform": "privacy of uniform",
            "normal": "privacy of normal",
        },
        "setting",
        "setting",
    ),
    Picture(
        "p0_time_records",
        "P0 figures 10b and 11b",
        "Processor seconds over records, 100 attributes",
        "laplace_times",
        {"sanitize": "seconds of sanitizing", "one query": "seconds of mining"},
        "records",
        "records",
        is_log=True,
    ),
    Picture(
        "p0_time_attributes",
        "P0 figures 10a and 11a",
        "Processor seconds over attributes, 100,000 records",
        "laplace_times",
        {"sanitize": "seconds of sanitizing", "one query": "seconds of mining"},
        "attributes",
        "attributes",
        is_log=True,
    ),
    Picture(
        "p1_breach",
        "P1 equation 2",
        "Largest difference of simulated from computed breach probability",
        "breach_formula",
        {"paper's formula": "simulated minus paper", "exact formula": "simulated minus exact"},
        "D",
        "free dimensions",
    ),
    Picture(
        "p1_sample",
        "P1 figures 2 and 4",
        "Relative error of the attack over the size of the sample",
        "known_sample",
        {"relative error": "relative error"},
        "share",
        "sample, as a share of the records",
    ),
    Picture(
        "p1_time",
        "P1 run time",
        "Processor seconds to try all signs",
        "sign_search_times",
        {"all signs": "seconds"},
        "dimensions",
        "dimensions",
        is_log=True,
    ),
    Picture(
        "p2_phi",
        "P2 figures 3a to 7a",
        "Loss of accuracy over the number of sites",
        "pooled_classifiers",
        {"ANN": "phi ann", "kNN": "phi knn", "naive Bayes": "phi nb"},
        "L",
        "sites",
    ),
    Picture(
        "p2_dapl",
        "P2 figures 3b to 7b",
        "Error of the density over the number of sites, two readings",
        "density_loss",
        {"plug-in": "plug-in DAPL", "held-out": "held-out DAPL"},
        "L",
        "sites",
    ),
    *(
        Picture(
            f"p3_{axis}_{key}",
            f"P3 figure {figure}",
            title,
            "cosine_sweep",
            {label: f"{quantity}, {fixed}" for label, quantity in series.items()},
            axis,
            f"{axis}, with {fixed.replace(' ', ' = ')}",
        )
        for axis, fixed, figure in (("b", "p 0.2", 4), ("p", "b 0.1", 5))
        for key, title, series in (
            (
                "loss",
                "Loss of distance, and change of accuracy",
                {"distance loss": "distance loss", "accuracy change": "accuracy change"},
            ),
            (
                "privacy",
                "Privacy",
                {"average case": "average privacy", "worst case": "worst-case privacy"},
            ),
        )
    ),
    Picture(
        "p3_partitions",
        "P3 figures 7 and 8",
        "Accuracy minus that of the central choice",
        "partitions",
        {
            "horizontal": "horizontal, accuracy minus central",
            "vertical": "vertical, accuracy minus central",
        },
        "sites",
        "sites",
    ),
    Picture(
        "p4_accuracy",
        "P4 figure 5",
        "Accuracy of k neighbours on original and release",
        "embedded_neighbours",
        {"original": "accuracy original", "release": "accuracy release"},
        "k",
        "neighbours k",
    ),
    Picture(
        "p4_neighbours",
        "P4 figure 6",
        "Share of the k nearest neighbours that stay",
        "layout_quality",
        {
            name: f"neighbours kept, {key}"
            for name, key in (
                ("scaling", "scaling"),
                ("rotation", "rotation"),
                ("projection", "projection"),
            )
        },
        "k",
        "neighbours k",
    ),
    Picture(
        "p4_compactness",
        "P4 figure 7",
        "Share of the k nearest rows with the same class",
        "layout_quality",
        {
            name: f"compactness, {name}"
            for name in ("original", "scaling", "rotation", "projection")
        },
        "k",
        "neighbours k",
    ),
    Picture(
        "p4_dimensions",
        "P4 figure 8",
        "Accuracy of four neighbours over dimensions",
        "dimension_sweep",
        {"scaling": "accuracy scaling", "projection": "accuracy projection"},
        "dimensions",
        "dimensions",
    ),
)


def draw_picture(picture: Picture, results: Results, claims: Sequence[Claim], path: Path) -> bool:
    """Draw one picture as SVG; return False if there is no result for it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    tables = [name for name, found in results.items() if find_points(picture, found)]
    if not tables:
        return False
    columns = min(MAX_COLUMNS, len(tables))
    lines = math.ceil(len(tables) / columns)
    size = (2.4 * columns + 0.6, 2.1 * lines + 0.5)
    with rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, table in zip(panels, tables, strict=False):
            draw_panel(axes, picture, table, results[table], claims)
        for axes in panels[len(tables) :]:
            axes.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
    return True


def find_points(picture: Picture, found: Quantities) -> dict[str, list[tuple[float, str]]]:
    """Return position and quantity of all points by the label of their series."""
    points: dict[str, list[tuple[float, str]]] = {}
    for label, name in picture.series.items():
        start = f"{name}/{picture.axis}="
        for quantity in found:
            if quantity.startswith(start) and is_number(quantity[len(start) :]):
                points.setdefault(label, []).append((float(quantity[len(start) :]), quantity))
    return points


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    return text.replace(".", "", 1).isdigit()


def draw_panel(
    axes: Axes, picture: Picture, table: str, found: Quantities, claims: Sequence[Claim]
) -> None:
    """Draw the series of one table, and grey bars where a paper claims a range."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=DARK, labelsize=7)
    axes.set_title(table or "generated", fontsize=8)
    axes.set_xlabel(picture.label or picture.axis, fontsize=7)
    if picture.is_log:
        axes.set_yscale("log")
    ranges: list[tuple[float, float, float]] = []
    for place, (label, points) in enumerate(find_points(picture, found).items()):
        points = sorted(points)
        figures = [compute_interval(found[quantity]) for _, quantity in points]
        x = [at for at, _ in points]
        value = [figure[0] for figure in figures]
        errors = [[f[0] - f[1] for f in figures], [f[2] - f[0] for f in figures]]
        style: dict[str, Any] = {"color": COLOURS[place], "marker": MARKERS[place]}
        axes.errorbar(x, value, errors, label=label, markersize=3, linewidth=1, capsize=2, **style)
        for at, quantity in points:
            ranges += [(at, *each) for each in find_claimed(f"{quantity}/{table}", claims)]
    low, high = axes.get_ylim()
    for at, first, last in ranges:
        first, last = max(first, low), min(last, high)
        if first <= last:
            axes.plot([at, at], [first, last], color=GREY, linewidth=6, zorder=0, alpha=0.6)
            axes.plot([at], [(first + last) / 2], color=GREY, marker="_", markersize=9, zorder=0)
    axes.set_ylim(low, high)


def find_claimed(quantity: str, claims: Sequence[Claim]) -> list[tuple[float, float]]:
    """Return the ranges that papers claim for a quantity."""
    return [
        (statement.low, statement.high)
        for claim in claims
        for statement in claim.statements
        if fnmatchcase(quantity.rstrip("/"), statement.quantity)
    ]
