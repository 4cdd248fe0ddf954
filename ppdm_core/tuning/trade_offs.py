"""What a limit costs: the best utility under it, and the utility that another value allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ppdm_core.gates.score_limits import compute_distances, format_limit
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import AMPLIFICATION, LEDGER, Limit
from ppdm_core.model.score import Score
from ppdm_core.sanitizers._sweep import round_up
from ppdm_core.tuning.choice import EQUAL_UTILITY, share_of
from ppdm_core.tuning.trial import Trial, find_gamma
from ppdm_core.tuning.utility import Utility

MODEST_FACTOR = 2.0  # a limit up to so many times as large is a modest change


@dataclass(frozen=True)
class TradeOff:
    """One limit or several, what they allow, and what other values of them would allow."""

    checks: tuple[str, ...]
    limits: tuple[str, ...]  # in words
    utility: str  # the best that keeps every limit, in words; "" if no setting does
    needed: tuple[str, ...]  # the other values of the limits, in words
    gained: str  # the utility then, in words
    setting: str  # digest of the setting that has it

    @property
    def sentence(self) -> str:
        now = f"the best tried is {self.utility}" if self.utility else "no setting tried is left"
        pairs = zip(self.checks, self.limits, strict=True)
        asked = " and ".join(f"{check} {limit}" for check, limit in pairs)
        return f"With {asked}, {now}; at {' and '.join(self.needed)} it would be {self.gained}."


def list_trade_offs(
    trials: Sequence[Trial], utility: Utility, limits: Mapping[str, Limit]
) -> tuple[TradeOff, ...]:
    """Return what each limit costs; none for a limit that costs nothing.

    For each limit, the settings count that break it and no other check. Of those that are more
    useful than any setting that breaks none, the most useful one is named that a modest change of
    the limit allows, or else the one that needs the smallest change. If no setting breaks a single
    limit only, the limits that settings break together are named together.
    """
    kept = [each for each in trials if each.outcome == "PASS"]
    best = max(kept, key=lambda each: share_of(each, utility), default=None)
    floor = share_of(best, utility) + EQUAL_UTILITY if best else -1.0
    groups: dict[tuple[str, ...], list[tuple[float, Trial]]] = {}
    for trial in trials:
        changed = tuple(check for check in limits if check in trial.broken)
        is_settled = len(changed) == len(trial.broken) > 0 and not trial.why_not
        factor = max((compute_factor(trial, check, limits[check]) for check in changed), default=0)
        if is_settled and math.isfinite(factor) and share_of(trial, utility) > floor:
            groups.setdefault(changed, []).append((factor, trial))
    single = {checks: found for checks, found in groups.items() if len(checks) == 1}
    return tuple(
        describe(checks, limits, best, pick(found, utility), utility)
        for checks, found in (single or ({} if best else groups)).items()
    )


def pick(found: Sequence[tuple[float, Trial]], utility: Utility) -> Trial:
    """Return the most useful of modest changes, else the smallest change."""
    modest = [trial for factor, trial in found if factor <= MODEST_FACTOR]
    if modest:
        return max(modest, key=lambda trial: share_of(trial, utility))
    return min(found, key=lambda pair: pair[0])[1]


def compute_factor(trial: Trial, check: str, limit: Limit) -> float:
    """Return how many times as large a limit must be; infinity if no value of it helps."""
    if check.startswith(LEDGER):
        return math.inf
    return compute_need(trial, check, limit) / limit.value if limit.value > 0 else math.inf


def compute_need(trial: Trial, check: str, limit: Limit) -> float:
    """Return the value of a limit that a setting would keep; infinity if there is none."""
    if check.startswith(AMPLIFICATION):
        return find_gamma(trial, check)
    score = trial.find_score(check)
    if score is None:
        return math.inf
    _, unfavourable = compute_distances(score, limit)
    is_reached = score.kind == "utility" and score.better == "up"
    return -unfavourable if is_reached else unfavourable


def describe(
    checks: tuple[str, ...],
    limits: Mapping[str, Limit],
    best: Trial | None,
    trial: Trial,
    utility: Utility,
) -> TradeOff:
    """Return a trade-off in words."""
    return TradeOff(
        checks=checks,
        limits=tuple(format_value(trial, check, limits[check]) for check in checks),
        utility=describe_utility(best, utility),
        needed=tuple(format_need(trial, check, limits[check]) for check in checks),
        gained=describe_utility(trial, utility),
        setting=trial.setting.digest,
    )


def describe_utility(trial: Trial | None, utility: Utility) -> str:
    """Return the utility of a trial in words, "" if there is none."""
    figure = utility.compute(trial.scores) if trial else None
    return figure.words if figure else ""


def is_share(score: Score) -> bool:
    """Return whether a score is a share of persons, records or values."""
    return METRICS[score.name.split(".")[-1]].bounds == (0.0, 1.0)


def format_value(trial: Trial, check: str, limit: Limit) -> str:
    """Return a limit in words, as a percentage where the score is a share."""
    score = trial.find_score(check)
    if score is None:
        return f"at most {limit.value:,.0f}"
    if not is_share(score):
        return format_limit(score, limit)
    side = "at most" if score.better == "down" else "at least"
    above = "" if limit.absolute else " above the baseline"
    return f"{side} {100 * limit.value:.3g} %{above}"


def format_need(trial: Trial, check: str, limit: Limit) -> str:
    """Return the value of a limit that a setting would keep, in words."""
    score, need = trial.find_score(check), compute_need(trial, check, limit)
    if score is None:
        return f"{round_up(need):,.0f}"
    return f"{100 * need:.2g} %" if is_share(score) else f"{need:.3g}"
