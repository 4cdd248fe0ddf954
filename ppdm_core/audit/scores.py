"""From measured values to a score: interval, worst draw, and a sentence in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ppdm_core.metrics import Metric, Told
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import jackknife, paired, wilson

Ends = Callable[[float], tuple[float, float]]  # an interval at some level


@dataclass(frozen=True, eq=False)
class Figures:
    """What was measured, before anything is made of it."""

    values: list[float]  # one for each shadow draw
    n: int  # records behind them
    baseline: float
    value_on: Callable[[Ints], float]  # the same on a subset of the people
    units: int  # how many people such a subset is taken from
    control_n: int | None = None  # people behind the baseline, if it was measured on some
    ends: Ends | None = None  # the interval, if the metric has one of its own
    worst_decile: float | None = None
    worst_group: float | None = None
    group: str | None = None
    original: float | None = None
    candidate: str | None = None
    expected: float | None = None
    victims: float | None = None
    change: Floats | None = None  # of each person, for what is told of the same ones twice
    choices: int = 1  # how many figures it is the best of
    notes: Mapping[str, float] = field(default_factory=dict)


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
    least, most = metric.bounds
    low, high = interval(metric, value, figures, level, rng)
    return Score(
        name=name,
        kind=metric.kind,
        better=metric.better,
        value=value,
        low=min(max(low, least), value),
        high=max(min(high, most), value),
        n=figures.n,
        baseline=figures.baseline,
        worst=max(figures.values) if metric.better == "down" else min(figures.values),
        worst_decile=figures.worst_decile,
        worst_group=figures.worst_group,
        group=figures.group,
        original=figures.original,
        candidate=figures.candidate,
        expected=figures.expected,
        victims=figures.victims,
        notes={**figures.notes, **capped(metric, value, figures.baseline)},
        sentence=metric.sentence(Told(value, figures.baseline, story, epsilon, figures.original)),
    )


def capped(metric: Metric, value: float, baseline: float) -> dict[str, float]:
    """Whoever ignores the release has the baseline: what lies above it protects nobody."""
    is_privacy = (metric.kind, metric.better) == ("privacy", "up")
    return {"capped": min(value, baseline)} if is_privacy else {}


def interval(
    metric: Metric, value: float, figures: Figures, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """The draws share their people, so a rate is as sure as its people, not people x draws.

    A baseline that was measured itself makes the excess over it less sure (Newcombe's interval
    for the difference of two rates, told as one for the value). The best of several is only as
    sure as all of them together.
    """
    level = 1.0 - (1.0 - level) / figures.choices
    if figures.change is not None:
        return paired(figures.change, level)
    if not metric.is_rate:
        if figures.ends is not None:
            return figures.ends(level)
        return jackknife(figures.value_on, figures.units, level, rng)
    low, high = wilson(value, figures.n, level)
    if figures.control_n is None:
        return low, high
    least, most = wilson(figures.baseline, figures.control_n, level)
    above, below = figures.baseline - least, most - figures.baseline
    return value - np.hypot(value - low, below), value + np.hypot(high - value, above)


def pick_worst(means: Mapping[str, float], better: str) -> str:
    """The candidate that hurts the steward most: an oracle's choice, which no attacker has."""
    sign = -1.0 if better == "down" else 1.0
    return min(means, key=lambda name: sign * means[name])


def mean_notes(notes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Over the draws, of what all of them have."""
    names = sorted(set.intersection(*map(set, notes)))
    means = {name: float(np.mean([one[name] for one in notes])) for name in names}
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}
