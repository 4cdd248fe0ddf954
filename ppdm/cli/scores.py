"""The table of scores: attack, metric, value, interval and baseline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ppdm.cli.console import make_grid
from ppdm.cli.release_reply import split_name

if TYPE_CHECKING:
    from rich.table import Table

    from ppdm_core.model.score import Score

TITLES = ("attack", "metric", "value", "interval", "baseline", "n")


def render_scores(scores: Iterable[Score]) -> Table:
    """Return one row for each score."""
    return make_grid(map(format_cells, scores), TITLES, right=range(2, 6), wrap=(0, 1))


def format_cells(score: Score) -> tuple[str, ...]:
    """Return the cells of one score in the order of the titles."""
    attack, scenario, metric = split_name(score)
    where = " ".join(filter(None, (attack or "(release)", f"({scenario})" if scenario else "")))
    interval = f"{score.low:.3f} to {score.high:.3f}"
    return where, metric, f"{score.value:.3f}", interval, f"{score.baseline:.3f}", f"{score.n:,}"
