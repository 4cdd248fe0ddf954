"""From measured values to a score: interval, worst draw, and a sentence in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ppdm_core.intervals import jackknife, wilson
from ppdm_core.metrics import Metric
from ppdm_core.types import Ints, Score


@dataclass(frozen=True, eq=False)
class Figures:
    """What was measured, before anything is made of it."""

    values: list[float]  # one for each shadow draw
    n: int  # records behind them
    baseline: float
    value_on: Callable[[Ints], float]  # the same on a subset of the records
    worst_decile: float | None = None
    original: float | None = None
    candidate: str | None = None
    expected: float | None = None


def scored(
    metric: Metric,
    name: str,
    figures: Figures,
    *,
    level: float,
    rng: np.random.Generator,
    story: str,
    epsilon: float,
) -> Score:
    value = float(np.mean(figures.values))
    # The draws share their records, so a rate is as sure as its records, not records x draws.
    low, high = (
        wilson(value, figures.n, level)
        if metric.is_rate
        else jackknife(figures.value_on, figures.n, level, rng)
    )
    return Score(
        name=name,
        kind=metric.kind,
        better=metric.better,
        value=value,
        low=min(low, value),
        high=max(high, value),
        n=figures.n,
        baseline=figures.baseline,
        worst=max(figures.values) if metric.better == "down" else min(figures.values),
        worst_decile=figures.worst_decile,
        original=figures.original,
        candidate=figures.candidate,
        expected=figures.expected,
        sentence=metric.sentence(
            value=value,
            baseline=figures.baseline,
            story=story,
            epsilon=epsilon,
            original=figures.original,
        ),
    )


def pick_worst(means: Mapping[str, float], better: str) -> str:
    """The candidate that hurts the steward most: an oracle's choice, which no attacker has."""
    sign = -1.0 if better == "down" else 1.0
    return min(means, key=lambda name: sign * means[name])
