"""What was measured of one setting, and how far it is from each limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ppdm_core.gates.score_limits import compute_distances, orient_limit
from ppdm_core.model.policy import AMPLIFICATION, Limit
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import Score, is_sound
from ppdm_core.model.verdict import Finding, Outcome, worst
from ppdm_core.tuning.setting import Setting

# The release is judged on other draws: a setting must keep each limit with so many times the
# distance from its value to the unfavourable end of its interval.
MARGIN = 1.5


@dataclass(frozen=True)
class Trial:
    """One setting, measured on some records and draws under keys of the tune."""

    setting: Setting
    round: int  # 1 is the first
    records: int
    scores: tuple[Score, ...] = ()  # of limits and uses
    findings: tuple[Finding, ...] = ()  # of the gates that judge settings
    guarantee: Guarantee | None = None
    why_not: str = ""  # why nothing could be measured
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """What the gates say of the measurements of the tune."""
        return "FAIL" if self.why_not else worst(self.findings)

    @property
    def broken(self) -> tuple[str, ...]:
        """The checks that did not pass."""
        return tuple(each.check for each in self.findings if each.outcome != "PASS")

    def find_score(self, name: str) -> Score | None:
        """Return the sound score of a name, or None."""
        found = (score for score in self.scores if score.name == name and is_sound(score))
        return next(found, None)


def compute_slack(score: Score, limit: Limit, shrink: float = 1.0) -> float:
    """Return how much room a limit leaves beyond the margin; below 0 there is none.

    ``shrink``: by how much the interval will be narrower in the last round. In units of the limit,
    so that limits can be compared.
    """
    favourable, unfavourable = compute_distances(score, limit)
    shift = 0.0 if limit.absolute else score.baseline
    value = score.value - shift if score.better == "down" else shift - score.value
    line = limit.value if limit.review is None else limit.review
    reach = value + MARGIN * shrink * (unfavourable - value)
    if not score.is_certifiable:
        reach = favourable
    allowed = orient_limit(score, limit, line)
    return (allowed - reach) / max(abs(allowed), 0.01)


def compute_room(trial: Trial, limits: Mapping[str, Limit], shrink: float = 1.0) -> float:
    """Return the smallest room that any limit leaves; minus infinity if a check fails outright."""
    judged = {name: trial.find_score(name) for name in limits}
    rooms = [
        compute_slack(score, limits[name], shrink)
        for name, score in judged.items()
        if score is not None
    ]
    measured = {name for name, score in judged.items() if score is not None}
    fails = [each for each in trial.findings if each.outcome == "FAIL"]
    if trial.why_not or any(each.check not in measured for each in fails):
        return -math.inf
    return min(rooms, default=0.0)


def find_gamma(trial: Trial, check: str) -> float:
    """Return gamma of the unit that a limit on amplification names; infinity without a bound."""
    unit = check.removeprefix(AMPLIFICATION)
    guarantee = trial.guarantee
    if guarantee is None or guarantee.kind == "empirical":
        return math.inf
    ln_gamma = float(getattr(guarantee, f"ln_{unit}"))
    return math.exp(ln_gamma) if ln_gamma < 700 else math.inf
