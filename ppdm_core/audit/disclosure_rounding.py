"""Figures of an audit as outsiders may read them: in bands.

Whoever gets exact answers about private records, release after release, can work out the records
that the answers turn on. So a figure that leaves is rounded to the unfavourable side of its band:
what attackers get upward, what recipients get downward, and what both are compared with the other
way. Bands end at 0, 1, 2, 5, 10, 15, ... 100 %; above that they have one digit. What the release
file declares is public, and stays exact.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace

from ppdm_core.metrics import METRICS, Told
from ppdm_core.model.score import AuditReport, Score

ENDS = (0.0, 0.01, 0.02, *(step / 20 for step in range(1, 21)))

Round = Callable[[float], float]


def at_most(value: float) -> float:
    """The upper end of its band. That something is exactly 0 is an exact answer, too."""
    if value < 0:
        return 0.0 - at_least(-value)  # minus 0 would be told as -0
    if value <= 1:
        return ENDS[max(1, bisect_left(ENDS, value))]
    return steps_of(value)[1]


def at_least(value: float) -> float:
    """The lower end of its band. That something is exactly 1 is an exact answer, too."""
    if value < 0:
        return -at_most(-value)
    if value <= 1:
        return ENDS[min(len(ENDS) - 1, bisect_right(ENDS, value)) - 1]
    return steps_of(value)[0]


def steps_of(value: float) -> tuple[float, float]:
    """The neighbours above 1, of 1, 2, 3, ... 9, 10, 20, ..."""
    if not math.isfinite(value):
        return value, value
    decade = 10.0 ** math.floor(math.log10(value))
    if decade > value:  # the logarithm of 999.9999999999999 is 3
        decade /= 10
    return math.floor(value / decade) * decade, math.ceil(value / decade) * decade


def banded(score: Score, epsilon: float) -> Score:
    """The score with no figure that is exact, and its sentence told anew."""
    worse, better = (at_most, at_least) if score.better == "down" else (at_least, at_most)
    return replace(
        score,
        value=worse(score.value),
        low=at_least(score.low),
        high=at_most(score.high),
        baseline=better(score.baseline),
        worst=worse(score.worst),
        worst_decile=perhaps(worse, score.worst_decile),
        worst_group=perhaps(worse, score.worst_group),
        original=perhaps(better, score.original),
        expected=perhaps(worse, score.expected),
        victims=perhaps(worse, score.victims),
        notes={name: worse(value) for name, value in score.notes.items()},
        sentence=retold(score, epsilon, worse, better),
    )


def perhaps(rounded: Round, value: float | None) -> float | None:
    return None if value is None else rounded(value)


def retold(score: Score, epsilon: float, worse: Round, better: Round) -> str:
    """The story stays, the figures after it are rounded. What cannot be told so is not told."""
    metric = METRICS.get(score.name.split(".")[-1])
    if metric is None:
        return ""
    exact = Told(score.value, score.baseline, "", epsilon, score.original)
    rounded = Told(
        worse(score.value), better(score.baseline), "", epsilon, perhaps(better, score.original)
    )
    figures = metric.sentence(exact)
    if not score.sentence.endswith(figures):
        return ""
    return score.sentence.removesuffix(figures) + metric.sentence(rounded)


def banded_report(report: AuditReport, epsilon: float) -> AuditReport:
    return replace(report, scores=tuple(banded(score, epsilon) for score in report.scores))


def observed(score: Score) -> str:
    """A banded score in a few words."""
    return f"{'at most' if score.better == 'down' else 'at least'} {score.value:g}"
