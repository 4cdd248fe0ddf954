"""The setting of the best utility that keeps the policy, and the frontier of all settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ppdm_core.model.policy import Limit
from ppdm_core.tuning.trial import Trial, compute_room
from ppdm_core.tuning.utility import Utility

EQUAL_UTILITY = 0.01  # settings within this share are equally useful
OUTCOMES = ("PASS", "REVIEW", "FAIL")
PROMISES = ("bounded", "bounded_given_basis", "empirical")  # strongest first


@dataclass(frozen=True)
class Choice:
    """The setting that a tune proposes."""

    trial: Trial
    has_margin: bool  # else other draws may well break a limit


def choose_setting(
    finalists: Sequence[Trial], utility: Utility, limits: Mapping[str, Limit]
) -> Choice | None:
    """Return the most useful setting that passes every check, or None.

    Settings that pass with a margin come first. Of equally useful ones the one with the stronger
    guarantee is taken, then that with the smaller gamma. Without a margin, the one with the most
    room is taken.
    """
    passing = [each for each in finalists if each.outcome == "PASS"]
    shares = {each.setting.digest: share_of(each, utility) for each in passing}
    safe = [each for each in passing if compute_room(each, limits) >= 0]
    if safe:
        best = max(shares[each.setting.digest] for each in safe)
        equal = [each for each in safe if shares[each.setting.digest] >= best - EQUAL_UTILITY]
        return Choice(min(equal, key=rank_promise), True)
    if passing:
        return Choice(max(passing, key=lambda each: compute_room(each, limits)), False)
    return None


def rank_promise(trial: Trial) -> tuple[int, float]:
    """Return the rank of a guarantee, the strongest first."""
    guarantee = trial.guarantee
    if guarantee is None:
        return len(PROMISES), 0.0
    return PROMISES.index(guarantee.kind), guarantee.ln_record


def share_of(trial: Trial, utility: Utility) -> float:
    """Return the utility of a trial as a share; -1 if it was not measured."""
    figure = utility.compute(trial.scores)
    return figure.share if figure else -1.0


def order_trials(trials: Sequence[Trial], utility: Utility) -> list[Trial]:
    """Return trials for people: those that pass first, the most useful of each outcome first."""
    return sorted(trials, key=lambda each: (OUTCOMES.index(each.outcome), -share_of(each, utility)))


def find_dominated(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each point (risk, use) whether another has less risk and no less use, or v.v."""
    return [
        any(other[0] <= risk and other[1] >= use and other != (risk, use) for other in points)
        for risk, use in points
    ]
