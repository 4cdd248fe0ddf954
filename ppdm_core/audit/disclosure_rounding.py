"""Round the figures of an audit before outsiders read them.

Exact figures about private records, release after release, let a reader work out the records that
the figures depend on. So a published figure is rounded to the unfavourable end of its band: risks
upward, utility downward, and what both are compared with the other way. Bands end at 0, 1, 2, 5,
10, 15, ... 100 %; above that they have one digit. What the release file declares is public and
stays exact.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace

from ppdm_core.metrics import METRICS, SentenceValues
from ppdm_core.model.score import AuditReport, Score

ENDS = (0.0, 0.01, 0.02, *(step / 20 for step in range(1, 21)))

Rounding = Callable[[float], float]


def round_up(value: float) -> float:
    """Return the upper end of the band; 0 becomes 1 %, because exactly 0 is an exact figure."""
    if value < 0:
        return 0.0 - round_down(-value)  # minus 0 would be shown as -0
    if value <= 1:
        return ENDS[max(1, bisect_left(ENDS, value))]
    return find_neighbours(value)[1]


def round_down(value: float) -> float:
    """Return the lower end of the band; 1 becomes 95 %, because exactly 1 is an exact figure."""
    if value < 0:
        return -round_up(-value)
    if value <= 1:
        return ENDS[min(len(ENDS) - 1, bisect_right(ENDS, value)) - 1]
    return find_neighbours(value)[0]


def find_neighbours(value: float) -> tuple[float, float]:
    """Return the neighbours of a value above 1 among 1, 2, 3, ... 9, 10, 20, ..."""
    if not math.isfinite(value):
        return value, value
    decade = 10.0 ** math.floor(math.log10(value))
    if decade > value:  # the logarithm of 999.9999999999999 is 3
        decade /= 10
    return math.floor(value / decade) * decade, math.ceil(value / decade) * decade


def round_score(score: Score, epsilon: float) -> Score:
    """Return the score with every exact figure rounded, and its sentence with the rounded ones."""
    worse, better = (round_up, round_down) if score.better == "down" else (round_down, round_up)
    rounded = replace(
        score,
        value=worse(score.value),
        low=round_down(score.low),
        high=round_up(score.high),
        baseline=better(score.baseline),
        worst=worse(score.worst),
        worst_decile=_round_if_given(worse, score.worst_decile),
        worst_group=_round_if_given(worse, score.worst_group),
        original=_round_if_given(better, score.original),
        expected=_round_if_given(worse, score.expected),
        victims=_round_if_given(worse, score.victims),
        notes={name: worse(value) for name, value in score.notes.items()},
    )
    return replace(rounded, sentence=format_sentence(rounded, epsilon))


def _round_if_given(rounding: Rounding, value: float | None) -> float | None:
    return None if value is None else rounding(value)


def format_sentence(score: Score, epsilon: float) -> str:
    """Return the sentence of a score, "" for a score of an unknown metric."""
    metric = METRICS.get(score.name.split(".")[-1])
    if metric is None:
        return ""
    values = SentenceValues(score.value, score.baseline, score.story, epsilon, score.original)
    return metric.sentence(values)


def round_report(report: AuditReport, epsilon: float) -> AuditReport:
    """Return the report with all scores rounded."""
    return replace(report, scores=tuple(round_score(score, epsilon) for score in report.scores))


def format_band(value: float) -> str:
    """Return the end of a band as a percentage."""
    return f"{100 * value:g} %"


def format_bound(score: Score) -> str:
    """Return a rounded score in a few words."""
    return f"{'at most' if score.better == 'down' else 'at least'} {score.value:g}"
