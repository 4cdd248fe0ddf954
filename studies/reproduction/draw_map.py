"""Draw the heat map of methods and attacks, and the frontier of methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.reproduction.method_map import Audited, is_near
from studies.reproduction.pictures import COLOURS, DARK, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def choose_common(audits: Sequence[Audited]) -> dict[tuple[str, str], Audited]:
    """Return the audit at the common utility by table and method."""
    return {(each.table, each.method): each for each in audits if each.attacks == "all"}


def list_unique(values: Sequence[str]) -> list[str]:
    """Return values in their order, each once."""
    return list(dict.fromkeys(values))


def draw_heat_map(audits: Sequence[Audited], path: Path) -> None:
    """Draw the excess of each attack over its baseline, at the common utility."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    common = choose_common(audits)
    tables = list_unique([table for table, _ in common])
    methods = list_unique([method for _, method in common])
    attacks = sorted({name for each in common.values() for name in each.risks})
    with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        size = (1.9 * len(tables) + 1.6, 0.2 * len(attacks) + 1.9)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(1, len(tables), squeeze=False, sharey=True)[0]
        for axes, table in zip(panels, tables, strict=True):
            draw_heat_panel(axes, [common.get((table, each)) for each in methods], attacks)
            axes.set_title(table, fontsize=8)
            marked = [mark_missed(common.get((table, each)), each) for each in methods]
            axes.set_xticks(range(len(methods)), marked, rotation=90, fontsize=6)
        figure.savefig(path, metadata={"Date": None})


def mark_missed(each: Audited | None, method: str) -> str:
    """Return a method, with an asterisk if it is not near the common utility."""
    return method if each is None or is_near(each) else f"{method} *"


def draw_heat_panel(axes: Axes, columns: Sequence[Audited | None], attacks: list[str]) -> None:
    """Draw one table; an empty cell is an attack that does not apply, or that has no rate."""
    grid = np.full((len(attacks), len(columns)), math.nan)
    for column, each in enumerate(columns):
        for row, attack in enumerate(attacks):
            if each and attack in each.risks:
                grid[row, column] = max(0.0, each.compute_excess(attack))
    axes.imshow(grid, vmin=0.0, vmax=1.0, cmap="Reds", aspect="auto")
    for row, column in np.argwhere(~np.isnan(grid)):
        value = float(grid[row, column])
        colour = "white" if value > 0.6 else DARK
        text = f"{100 * value:.0f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=5, color=colour)
    axes.set_yticks(range(len(attacks)), attacks, fontsize=6)
    axes.tick_params(length=0)


def draw_frontier(audits: Sequence[Audited], path: Path) -> None:
    """Draw the largest risk above its baseline against accuracy, for all attacked settings."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    attacked = [each for each in audits if each.attacks != "none"]
    tables = list_unique([each.table for each in attacked])
    methods = list_unique([each.method for each in attacked])
    with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        columns = min(2, len(tables))
        lines = math.ceil(len(tables) / columns)
        figure = Figure(figsize=(3.6 * columns, 2.5 * lines + 0.6), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False, sharey=True)
        for axes, table in zip(panels.ravel(), tables, strict=False):
            for place, method in enumerate(methods):
                own = [each for each in attacked if (each.table, each.method) == (table, method)]
                draw_method(axes, own, method, place)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_title(table, fontsize=8)
            axes.set_ylim(-0.03, 1.03)
            axes.tick_params(labelsize=7)
        for axes in panels.ravel()[len(tables) :]:
            axes.set_visible(False)
        for axes in panels[-1]:
            axes.set_xlabel("accuracy of the best classifier", fontsize=7)
        for axes in panels[:, 0]:
            axes.set_ylabel("largest risk above its baseline", fontsize=7)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        place_of_legend: Any = "outside upper left"
        figure.legend(handles, labels, loc=place_of_legend, ncols=4, fontsize=7, frameon=False)
        figure.savefig(path, metadata={"Date": None})


def draw_method(axes: Axes, audits: Sequence[Audited], method: str, place: int) -> None:
    """Draw the settings of one method; the one at the common utility has a filled marker."""
    points = sorted((each.accuracy, each.worst_risk, each.attacks == "all") for each in audits)
    colour, marker = COLOURS[place], MARKERS[place]
    x, y = [point[0] for point in points], [point[1] for point in points]
    axes.plot(
        x, y, color=colour, linewidth=1, marker=marker, markersize=4, mfc="none", label=method
    )
    for accuracy, risk, is_common in points:
        if is_common:
            axes.plot([accuracy], [risk], color=colour, marker=marker, markersize=5)
