from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.gates._gate import Evidence
from ppdm_core.gates.amplification import PREFIX
from ppdm_core.gates.ledger import LEDGER
from ppdm_core.metrics import METRICS, Metric
from ppdm_core.model.policy import Limit
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Finding, Outcome


@dataclass(frozen=True)
class ScoreLimits:
    """Limits on measured scores, judged by both ends of their interval.

    PASS when even the unfavourable end keeps the limit, FAIL when even the favourable one breaks
    it, else REVIEW, because too few records were measured to tell; also REVIEW in the band that
    the limit leaves to people. Limits are on the excess over the baseline (for privacy scores
    where more is better: on the shortfall below it) unless ``absolute``.
    """

    name: ClassVar[str] = "score_limits"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        scores = evidence.report.scores
        for score in scores:
            if not is_sound(score):
                yield Finding(score.name, "FAIL", f"{score.name} could not be measured.")
        for key, limit in evidence.policy.limits.items():
            if key.startswith((PREFIX, LEDGER)):
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
    """Of a sound score: NaN is neither within a limit nor beyond it."""
    outcome, allowed = outcome_of(score, limit), in_words(score, limit)
    observed = f"{score.value:.3g} [{score.low:.3g}, {score.high:.3g}]"
    if outcome == "PASS":
        why = score.sentence
    elif outcome == "FAIL":
        why = f"{score.sentence} Limit: {allowed} ({limit.set_by}: {limit.reason})."
    elif is_toothless(score, limit):
        why = (
            f"{score.sentence} The limit ({allowed}) cannot be broken here, because the baseline "
            f"is {score.baseline:.3g} already; use absolute = true or another epsilon."
        )
    elif surely_keeps(score, limit, limit.value):
        why = (
            f"{score.sentence} The limit ({allowed}) holds, but people decide from "
            f"{limit.review:.3g} on ({limit.set_by}: {limit.reason})."
        )
    else:
        why = (
            f"{score.sentence} {score.n} records are too few to tell whether the limit "
            f"({allowed}) holds; the interval is {score.low:.3g} to {score.high:.3g}."
        )
    return Finding(score.name, outcome, why, observed, allowed)


def outcome_of(score: Score, limit: Limit) -> Outcome:
    favourable, _ = distances(score, limit)
    if not favourable <= line_of(score, limit, limit.value):  # a limit that is NaN keeps nothing
        return "FAIL"
    lines = [line for line in (limit.value, limit.review) if line is not None]
    is_kept = all(surely_keeps(score, limit, line) for line in lines)
    return "PASS" if is_kept and not is_toothless(score, limit) else "REVIEW"


def surely_keeps(score: Score, limit: Limit, line: float) -> bool:
    return distances(score, limit)[1] <= line_of(score, limit, line)


def distances(score: Score, limit: Limit) -> tuple[float, float]:
    """The interval as something that must stay at or below a line: (favourable, unfavourable)."""
    shift = 0.0 if limit.absolute else score.baseline
    if score.better == "down":
        return score.low - shift, score.high - shift
    return shift - score.high, shift - score.low


def line_of(score: Score | Metric, limit: Limit, value: float) -> float:
    """For scores where more is better, a value to reach; for privacy, a shortfall to bear."""
    is_shortfall = score.kind == "privacy" and not limit.absolute
    return value if score.better == "down" or is_shortfall else -value


def is_toothless(score: Score, limit: Limit) -> bool:
    """A limit below the worst value there is, that the baseline alone puts out of reach."""
    worst = METRICS[score.name.split(".")[-1]].bounds[1 if score.better == "down" else 0]
    if limit.absolute or score.kind != "privacy" or not math.isfinite(worst):
        return False
    room = abs(worst - score.baseline)
    return limit.value >= room and limit.value < abs(worst)


def in_words(judged: Score | Metric, limit: Limit) -> str:
    if limit.absolute:
        return f"{'at most' if judged.better == 'down' else 'at least'} {limit.value:.3g}"
    if judged.better == "down":
        return f"at most {limit.value:.3g} above the baseline"
    if judged.kind == "privacy":
        return f"at most {limit.value:.3g} below the baseline"
    return f"at least {limit.value:.3g} above the baseline"
