"""Draw our pictures beside the figures of the papers, from our results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.reproduction.decision import compute_interval
from studies.reproduction.picture import Picture
from studies.reproduction.registry import Claim
from studies.reproduction.results import Quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (  # for colour-blind readers
    "#D55E00",
    "#0072B2",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY, DARK = "#BDBDBD", "#404040"
MAX_COLUMNS = 4
Results = Mapping[str, Quantities]  # quantities by table


def draw_picture(picture: Picture, results: Results, claims: Sequence[Claim], path: Path) -> bool:
    """Draw one picture as SVG; return False if there is no result for it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = list(list_panels(picture, results, claims))
    if not panels:
        return False
    columns = min(MAX_COLUMNS, len(panels))
    lines = math.ceil(len(panels) / columns)
    size = (2.4 * columns + 0.6, 2.1 * lines + 0.5)
    with rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, (title, draw) in zip(grid, panels, strict=False):
            prepare_panel(axes, title)
            draw(axes)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        handles, labels = grid[0].get_legend_handles_labels()
        if labels:
            place: Any = "outside upper left"
            most = max(2, 2 * columns)
            figure.legend(handles, labels, loc=place, ncols=min(most, len(labels)), frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
    return True


def list_panels(
    picture: Picture, results: Results, claims: Sequence[Claim]
) -> Iterator[tuple[str, Callable[[Axes], None]]]:
    """Yield title and drawing of each panel for which there are results."""
    for table, found in results.items():
        if not has_points(picture, found) or (picture.tables and table not in picture.tables):
            continue
        if picture.clouds:
            for title, pairs in picture.clouds.items():
                yield title, partial(draw_cloud, picture=picture, found=found, pairs=pairs)
        elif picture.points:
            yield table, partial(draw_points, picture=picture, found=found)
        elif picture.values:
            yield table, partial(draw_values, picture=picture, found=found)
        else:
            yield (
                table,
                partial(draw_panel, picture=picture, table=table, found=found, claims=claims),
            )


def has_points(picture: Picture, found: Quantities) -> bool:
    """Return whether there is something to draw."""
    pairs = [pair for each in picture.points.values() for pair in each]
    pairs += [pair for each in picture.clouds.values() for pair in each.values()]
    needed = [*picture.values.values(), *(quantity for pair in pairs for quantity in pair)]
    return all(name in found for name in needed) if needed else bool(find_points(picture, found))


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


def prepare_panel(axes: Axes, table: str) -> None:
    """Set the look of a panel."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=DARK, labelsize=7)
    axes.set_title(table or "generated", fontsize=8)


def draw_cloud(
    axes: Axes, picture: Picture, found: Quantities, pairs: Mapping[str, tuple[str, str]]
) -> None:
    """Draw a dot for each record."""
    for place, (label, (across, up)) in enumerate(pairs.items()):
        style: dict[str, Any] = {"color": COLOURS[place], "marker": MARKERS[place]}
        axes.plot(found[across], found[up], label=label, linestyle="none", markersize=2, **style)
    axes.set_xlabel(picture.label, fontsize=7)
    axes.set_ylabel(picture.up, fontsize=7)


def draw_points(axes: Axes, picture: Picture, found: Quantities) -> None:
    """Draw pairs of values with the intervals of both, joined by a line for each label."""
    for place, (label, pairs) in enumerate(picture.points.items()):
        figures = [[compute_interval(found[name]) for name in pair] for pair in pairs]
        x, y = ([each[side][0] for each in figures] for side in (0, 1))
        x_errors, y_errors = (
            [
                [each[side][0] - each[side][1] for each in figures],
                [each[side][2] - each[side][0] for each in figures],
            ]
            for side in (0, 1)
        )
        style: dict[str, Any] = {"color": COLOURS[place], "marker": MARKERS[place]}
        axes.errorbar(
            x, y, y_errors, x_errors, label=label, markersize=3, linewidth=0.8, capsize=1, **style
        )
    axes.set_xlabel(picture.label, fontsize=7)
    axes.set_ylabel(picture.up, fontsize=7)


def draw_values(axes: Axes, picture: Picture, found: Quantities) -> None:
    """Draw one value with its interval for each label, and a line at 0."""
    labels = list(picture.values)
    figures = [compute_interval(found[picture.values[label]]) for label in labels]
    axes.axvline(0.0, color=GREY, linewidth=1)
    axes.errorbar(
        [value for value, _, _ in figures],
        range(len(labels)),
        xerr=[[f[0] - f[1] for f in figures], [f[2] - f[0] for f in figures]],
        color=COLOURS[0],
        marker="o",
        markersize=3,
        linestyle="none",
        capsize=2,
    )
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()


def draw_panel(
    axes: Axes, picture: Picture, table: str, found: Quantities, claims: Sequence[Claim]
) -> None:
    """Draw the series of one table, and grey bars where a paper claims a range."""
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
