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
from ppdm_core.numerics.intervals import IntervalAtLevel, jackknife


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
    judged: int = 1,
    tried: int = 1,
    rng: np.random.Generator,
    story: str,
    epsilon: float,
) -> Score:
    """Return the score of some figures, with its interval at ``level``.

    ``judged``: the number of scores that limits judge. ``tried``: the number of settings that this
    one was chosen from.
    """
    value = float(np.mean(figures.values))
    low, high = compute_interval(metric, figures, level, judged, rng, tried)
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
    metric: Metric,
    figures: Figures,
    level: float,
    judged: int,
    rng: np.random.Generator,
    tried: int = 1,
) -> tuple[float, float]:
    """Return the interval of a value; each end misses the truth with probability (1 - level) / 2.

    A release passes only if every limit is kept, so the end that a PASS rests on needs no
    correction for their number. It fails if one of them is broken, so the other end holds for all
    ``judged`` scores together. The end that a PASS rests on holds for all ``tried`` settings
    together, because one of them was chosen by such ends.

    The highest of several figures tends to be too high by chance. Its lower end is therefore that
    of a level at which the ends of all figures hold together. Its upper end needs no such level:
    that of the figure with the highest true value is no higher. The lowest is treated likewise.

    Where the baseline is measured, the upper end is that of the excess over it, and may be above
    every possible value.
    """
    interval = figures.interval or fit_jackknife(metric, figures, rng)
    breaks_low = metric.better == "down"  # which end breaks a limit
    is_highest = figures.chosen == "highest"
    low_tests = (judged if breaks_low else tried) * (figures.choices if is_highest else 1)
    high_tests = (tried if breaks_low else judged) * (1 if is_highest else figures.choices)
    return interval(divide_error(level, low_tests))[0], interval(divide_error(level, high_tests))[1]


def divide_error(level: float, tests: int) -> float:
    """Return the level of one of several intervals that hold together."""
    return 1.0 - (1.0 - level) / tests


def fit_jackknife(metric: Metric, figures: Figures, rng: np.random.Generator) -> IntervalAtLevel:
    """Return the interval of a value from its values without some of the persons."""
    interval = jackknife(figures.value_on, figures.units, rng)

    def find_ends(level: float) -> tuple[float, float]:
        low, high = interval(level)
        low, high = max(low, metric.bounds[0]), min(high, metric.bounds[1])
        if not math.isfinite(high - low):
            raise NotApplicable(
                f"{metric.name} has too few records for an interval.",
                reason=Reason.TOO_FEW_RECORDS,
            )
        return low, high

    return find_ends


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
