"""The plot of `ppdm ledger`: what was spent over time, and the limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ppdm.cli.ledger import format_ln_gamma, read_ln_limit, read_total

BLUE, RED = "#0072B2", "#D55E00"  # distinguishable for colour-blind readers
# The same entries give the same bytes, and text stays text.
SVG_SETTINGS: Any = {"svg.hashsalt": "ppdm", "svg.fonttype": "none"}


def draw_ledger(dataset: str, found: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the picture as SVG or PNG; the vertical axis is ln gamma, in which releases add up."""
    import matplotlib
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure  # without pyplot, which looks for a display

    spent = [read_total(entry) for entry in found]
    refused = [entry["ln_total"] if entry["kind"] == "refused" else math.nan for entry in found]
    limits = [math.nan if (limit := read_ln_limit(entry)) is None else limit for entry in found]
    known = [value for value in (*spent, *refused, *limits) if value and value > 0]
    top = 1.05 * max(known, default=1.0)  # also where there is no bound
    times: Any = [datetime.fromisoformat(entry["happened"]) for entry in found]
    end = times[-1] + max((times[-1] - times[0]) / 20, timedelta(hours=1))

    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    axes = figure.subplots()
    heights = [top if value is None else value for value in spent]
    axes.step([*times, end], [*heights, heights[-1]], BLUE, where="post", lw=2, label="spent")
    if not all(map(math.isnan, limits)):
        axes.step([*times, end], [*limits, limits[-1]], RED, where="post", ls="--", label="limit")
    crosses = [top if value is None else value for value in refused]
    if not all(map(math.isnan, crosses)):
        axes.plot(times, crosses, "x", color=RED, label="refused", clip_on=False)
    axes.set_title(f"{dataset}: gamma of all releases together, for the most exposed record")
    axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter(lambda value, place: format_ln_gamma(value))
    axes.xaxis.set_major_locator(locator := AutoDateLocator())
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    with matplotlib.rc_context(SVG_SETTINGS):
        metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=150, metadata=metadata)
