"""Draw the heat map of methods and attacks, and the frontier of methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from studies.reproduction.pictures import COLOURS, DARK, MARKERS

if TYPE_CHECKING:
    from studies.reproduction.method_map import Audited

MORE_COLOURS = (*COLOURS, "#56B4E9", "#000000")
MORE_MARKERS = (*MARKERS, "P", "X")


def choose_common(audits: Sequence[Audited]) -> dict[tuple[str, str], Audited]:
    """Return for each table and method the attacked setting nearest to the common utility."""
    from studies.reproduction.method_map import COMMON_SHARE

    found: dict[tuple[str, str], Audited] = {}
    for each in (audit for audit in audits if audit.is_attacked):
        key = each.table, each.method
        best = found.get(key)
        if best is None or abs(each.share - COMMON_SHARE) < abs(best.share - COMMON_SHARE):
            found[key] = each
    return found


def draw_heat_map(audits: Sequence[Audited], path: Path) -> None:
    """Draw the excess of each attack over its baseline, at the common utility."""
    from matplotlib.figure import Figure

    common = choose_common(audits)
    tables = list(dict.fromkeys(table for table, _ in common))
    methods = list(dict.fromkeys(method for _, method in common))
    attacks = sorted({name for each in common.values() for name in each.risks})
    if not tables:
        return
    figure = Figure(figsize=(2.2 * len(tables) + 2.2, 0.22 * len(attacks) + 2.2), layout="tight")
    panels = figure.subplots(1, len(tables), squeeze=False, sharey=True)[0]
    for axes, table in zip(panels, tables, strict=True):
        grid = np.full((len(attacks), len(methods)), math.nan)
        names = []
        for column, method in enumerate(methods):
            each = common.get((table, method))
            names.append(f"{method} ({each.share:.0%})" if each else method)
            for row, attack in enumerate(attacks):
                if each and attack in each.risks:
                    value, base = each.risks[attack]
                    grid[row, column] = max(0.0, value - base)
        axes.imshow(grid, vmin=0.0, vmax=1.0, cmap="Reds", aspect="auto")
        for row, column in np.argwhere(~np.isnan(grid)):
            value = float(grid[row, column])
            colour = "white" if value > 0.6 else DARK
            axes.text(
                column, row, f"{value:.2f}", ha="center", va="center", fontsize=5, color=colour
            )
        axes.set_title(table, fontsize=8)
        axes.set_xticks(range(len(methods)), names, rotation=90, fontsize=6)
        axes.set_yticks(range(len(attacks)), attacks, fontsize=6)
    figure.savefig(path, metadata={"Date": None})


def draw_frontier(audits: Sequence[Audited], path: Path) -> None:
    """Draw the largest risk above its baseline against accuracy, for all attacked settings."""
    from matplotlib.figure import Figure

    attacked = [each for each in audits if each.is_attacked]
    tables = list(dict.fromkeys(each.table for each in attacked))
    methods = list(dict.fromkeys(each.method for each in attacked))
    if not tables:
        return
    figure = Figure(figsize=(2.6 * len(tables) + 1.0, 3.0), layout="constrained")
    panels = figure.subplots(1, len(tables), squeeze=False, sharey=True)[0]
    for axes, table in zip(panels, tables, strict=True):
        for place, method in enumerate(methods):
            own = sorted(
                (each.accuracy, each.worst_risk)
                for each in attacked
                if (each.table, each.method) == (table, method)
            )
            x, y = [a for a, _ in own], [b for _, b in own]
            axes.plot(
                x,
                y,
                color=MORE_COLOURS[place],
                marker=MORE_MARKERS[place],
                markersize=4,
                linewidth=1,
                label=method,
            )
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(table, fontsize=8)
        axes.set_xlabel("accuracy of the best classifier", fontsize=7)
        axes.tick_params(labelsize=7)
    panels[0].set_ylabel("largest risk above its baseline", fontsize=7)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside upper left",
        ncols=4,
        fontsize=7,
        frameon=False,
    )
    figure.savefig(path, metadata={"Date": None})
