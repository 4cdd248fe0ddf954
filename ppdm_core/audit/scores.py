"""From measured values to a score: its interval, its worst draw, and its sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ppdm_core.metrics import Metric, SentenceValues
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import jackknife, paired_interval, wilson

IntervalAtLevel = Callable[[float], tuple[float, float]]  # low and high end at a level


@dataclass(frozen=True, eq=False)
class Figures:
    """What was measured, before it becomes a score."""

    values: list[float]  # one for each shadow draw
    n: int  # records behind them
    baseline: float
    value_on: Callable[[Ints], float]  # the same on a subset of the persons
    units: int  # how many persons such a subset is taken from
    control_n: int | None = None  # persons behind the baseline, if it was measured
    interval: IntervalAtLevel | None = None  # if the metric has one of its own
    worst_decile: float | None = None
    worst_group: float | None = None
    group: str | None = None
    original: float | None = None
    candidate: str | None = None
    expected: float | None = None
    victims: float | None = None
    change: Floats | None = None  # per person, for a difference measured on the same persons
    choices: int = 1  # number of figures that this one is the best of
    notes: Mapping[str, float] = field(default_factory=dict)


def make_score(
    metric: Metric,
    name: str,
    figures: Figures,
    *,
    level: float,
    rng: np.random.Generator,
    story: str,
    epsilon: float,
) -> Score:
    """Return the score of some figures, with its interval at ``level``."""
    value = float(np.mean(figures.values))
    lowest, highest = metric.bounds
    low, high = compute_interval(metric, value, figures, level, rng)
    values = SentenceValues(value, figures.baseline, story, epsilon, figures.original)
    return Score(
        name=name,
        kind=metric.kind,
        better=metric.better,
        value=value,
        low=min(max(low, lowest), value),
        high=max(min(high, highest), value),
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
        notes={**figures.notes, **cap_by_baseline(metric, value, figures.baseline)},
        story=story,
        sentence=metric.sentence(values),
    )


def cap_by_baseline(metric: Metric, value: float, baseline: float) -> dict[str, float]:
    """Return the privacy that counts: an attacker who ignores the release has the baseline."""
    is_privacy = (metric.kind, metric.better) == ("privacy", "up")
    return {"capped": min(value, baseline)} if is_privacy else {}


def compute_interval(
    metric: Metric, value: float, figures: Figures, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the interval of a value at a level.

    The draws share their persons, so a rate is as sure as its persons, not persons x draws. A
    measured baseline makes the excess over it less sure (Newcombe's interval for the difference
    of two rates, expressed for the value). The best of several figures is only as sure as all of
    them together.
    """
    level = 1.0 - (1.0 - level) / figures.choices
    if metric.is_census:
        return value, value
    if figures.change is not None:
        return paired_interval(figures.change, level)
    if not metric.is_rate:
        if figures.interval is not None:
            return figures.interval(level)
        return jackknife(figures.value_on, figures.units, level, rng)
    low, high = wilson(value, figures.n, level)
    if figures.control_n is None:
        return low, high
    least, most = wilson(figures.baseline, figures.control_n, level)
    above, below = figures.baseline - least, most - figures.baseline
    return value - np.hypot(value - low, below), value + np.hypot(high - value, above)


def pick_worst(means: Mapping[str, float], better: str) -> str:
    """Return the candidate with the highest risk; the choice uses the truth, unlike an attacker."""
    sign = -1.0 if better == "down" else 1.0
    return min(means, key=lambda name: sign * means[name])


def average_notes(notes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average the notes that all draws share."""
    names = sorted(set.intersection(*map(set, notes)))
    means = {name: float(np.mean([one[name] for one in notes])) for name in names}
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}
