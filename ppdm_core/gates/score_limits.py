from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.gates._gate import Evidence
from ppdm_core.gates.amplification import PREFIX
from ppdm_core.policy import Limit
from ppdm_core.types import Score
from ppdm_core.verdict import Finding


@dataclass(frozen=True)
class ScoreLimits:
    """Limits on measured scores, judged by the unfavourable end of their interval.

    FAIL when even the favourable end breaks the limit; a limit inside the interval is refused too,
    because too few records were measured to tell. Limits are on the excess over the baseline
    unless they say ``absolute``.
    """

    name: ClassVar[str] = "score_limits"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        scores = evidence.report.scores
        for score in scores:
            if not is_sound(score):
                yield Finding(score.name, "FAIL", f"{score.name} could not be measured.")
        for key, limit in evidence.policy.limits.items():
            if key.startswith(PREFIX):
                continue
            if all(score.name != key for score in scores):
                yield Finding(key, "FAIL", f"{key} has a limit but was not measured.")
            for score in scores:
                if score.name == key and is_sound(score):
                    yield judge(score, limit)


def is_sound(score: Score) -> bool:
    figures = (score.value, score.low, score.high, score.baseline, score.worst)
    is_ordered = score.low <= score.value <= score.high
    return score.n > 0 and all(map(math.isfinite, figures)) and is_ordered


def judge(score: Score, limit: Limit) -> Finding:
    shift = 0.0 if limit.absolute else score.baseline
    low, high = score.low - shift, score.high - shift
    if score.better == "down":
        kept, broken = high <= limit.value, low > limit.value
    else:
        kept, broken = low >= limit.value, high < limit.value
    allowed = f"{'at most' if score.better == 'down' else 'at least'} {limit.value:.3g}" + (
        "" if limit.absolute else " above the baseline"
    )
    observed = f"{score.value:.3g} [{score.low:.3g}, {score.high:.3g}]"
    if kept:
        why = score.sentence
    elif broken:
        why = f"{score.sentence} Limit: {allowed} ({limit.set_by}: {limit.reason})."
    else:
        why = (
            f"{score.sentence} {score.n} records are too few to tell whether the limit "
            f"({allowed}) holds; the interval is {score.low:.3g} to {score.high:.3g}."
        )
    return Finding(score.name, "PASS" if kept else "FAIL", why, observed, allowed)
