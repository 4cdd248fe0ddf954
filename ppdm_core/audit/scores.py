"""From measured values to a score: its interval, its worst draw, and its sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ppdm_core.metrics import Metric, SentenceValues
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import jackknife

IntervalAtLevel = Callable[[float], tuple[float, float]]  # low and high end at a level


@dataclass(frozen=True, eq=False)
class Figures:
    """What was measured, before it becomes a score."""

    values: list[float]  # one for each shadow draw
    n: int  # different records behind them
    baseline: float
    value_on: Callable[[Ints], float]  # the same on a subset of the persons
    units: int  # how many persons such a subset is taken from
    interval: IntervalAtLevel | None = None  # None: from the values on parts of the persons
    worst_decile: float | None = None
    worst_group: float | None = None
    group: str | None = None
    original: float | None = None
    candidate: str | None = None
    expected: float | None = None
    victims: float | None = None
    choices: int = 1  # number of figures that this one was chosen from
    chosen: Literal["highest", "lowest"] = "highest"
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
    low, high = compute_interval(metric, figures, level, rng)
    values = SentenceValues(value, figures.baseline, story, epsilon, figures.original)
    return Score(
        name=name,
        kind=metric.kind,
        better=metric.better,
        value=value,
        low=min(max(low, metric.bounds[0]), value),
        high=max(high, value),
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
    metric: Metric, figures: Figures, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the interval of a value at a level.

    The highest of several figures tends to be too high by chance. Its lower end is therefore that
    of a level at which the ends of all figures hold together. Its upper end needs no such level:
    that of the figure with the highest true value is no higher. The lowest is treated likewise.

    Where the baseline is measured, the upper end is that of the excess over it, and may be above
    every possible value.
    """

    def find_ends(level: float) -> tuple[float, float]:
        if figures.interval is not None:
            return figures.interval(level)
        low, high = jackknife(figures.value_on, figures.units, level, rng)
        low, high = max(low, metric.bounds[0]), min(high, metric.bounds[1])
        if not math.isfinite(high - low):
            raise NotApplicable(
                f"{metric.name} has too few records for an interval.",
                reason=Reason.TOO_FEW_RECORDS,
            )
        return low, high

    low, high = find_ends(level)
    if figures.choices > 1:
        stricter = find_ends(1.0 - (1.0 - level) / figures.choices)
        if figures.chosen == "highest":
            return stricter[0], high
        return low, stricter[1]
    return low, high


def average_persons(persons: Sequence[Ints], values: Sequence[Floats]) -> Floats:
    """Return the mean value of each person over all draws, which share the persons.

    Values of NaN are left out. The means of different persons are independent, so that an interval
    over them is as sure as the persons, not as persons x draws.
    """
    person, value = np.concatenate(persons), np.concatenate(values)
    _, which = np.unique(person[~np.isnan(value)], return_inverse=True)
    return np.asarray(np.bincount(which, value[~np.isnan(value)]) / np.bincount(which))


def pick_worst(means: Mapping[str, float], better: str) -> str:
    """Return the candidate with the highest risk; the choice uses the truth, unlike an attacker."""
    sign = -1.0 if better == "down" else 1.0
    return min(means, key=lambda name: sign * means[name])


def average_notes(notes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average the notes that all draws share."""
    names = sorted(set.intersection(*map(set, notes)))
    means = {name: float(np.mean([one[name] for one in notes])) for name in names}
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}
