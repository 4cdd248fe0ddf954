"""What a limit costs: the best utility under it, and the utility that another value allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ppdm_core.gates.score_limits import compute_distances, compute_limit, format_limit
from ppdm_core.metrics import METRICS
from ppdm_core.model.policy import AMPLIFICATION, Limit
from ppdm_core.model.score import Score
from ppdm_core.sanitizers._sweep import round_down, round_up
from ppdm_core.tuning.choice import EQUAL_UTILITY, share_of
from ppdm_core.tuning.trial import Trial, find_gamma
from ppdm_core.tuning.utility import Utility

MODEST_FACTOR = 2.0  # a limit up to so many times as large is a modest change


@dataclass(frozen=True)
class Offer:
    """A setting that a limit does not allow, and what would allow it."""

    setting: str  # digest
    gained: str  # its utility, in words
    needed: str  # the value of the limit, or a waiver, in words
    others: tuple[str, ...] = ()  # what would have to change besides, in words
    records: int = 0  # that it was measured on, if the finalists were measured on more

    @property
    def words(self) -> str:
        besides = f", together with {' and '.join(self.others)}" if self.others else ""
        fewer = f" (measured on {self.records:,} records only)" if self.records else ""
        return f"{self.needed} it would be {self.gained}{besides}{fewer}"


@dataclass(frozen=True)
class TradeOff:
    """A limit, or another check, with what it allows and what it does not allow."""

    check: str
    limit: str  # in words; "" for a check that is no limit
    utility: str  # the best that was tried under the limit, in words; "" if no setting keeps it
    is_alone: bool = False  # that setting breaks other limits: no setting keeps them all
    offers: tuple[Offer, ...] = ()  # the nearest, then the most useful, if that is another one
    why: str = ""  # of a check that is no limit

    @property
    def sentence(self) -> str:
        if not self.limit:
            return f"No setting tried passes {self.check}: {self.why}"
        asked = f"{self.check} {self.limit}"
        now = f"No setting tried keeps {asked}"
        if self.utility:
            alone = " alone" if self.is_alone else ""
            now = f"With {asked}{alone}, the best tried is {self.utility}"
        return f"{now}; {', and '.join(offer.words for offer in self.offers)}."


def list_trade_offs(
    trials: Sequence[Trial], utility: Utility, limits: Mapping[str, Limit]
) -> tuple[TradeOff, ...]:
    """Return what each limit costs; none for a limit that costs nothing.

    The best setting that keeps every limit is compared with more useful ones that break the limit.
    If no setting keeps every limit, each broken limit is compared with the best setting that keeps
    this one, and checks that every setting fails and that are no limits are named, too. A setting
    that passed in an earlier round alone counts as undecided, and is left out.
    """
    last = max((each.round for each in trials), default=0)
    measured = [
        each
        for each in trials
        if not each.why_not
        and utility.compute(each.scores)
        and (each.round == last or each.outcome != "PASS")
    ]
    found = [trade_off for check in limits for trade_off in weigh(check, measured, utility, limits)]
    if any(each.outcome == "PASS" for each in measured):
        return tuple(found)
    named = {trade_off.check for trade_off in found}
    return (*found, *list_failed_checks(measured, named))


def weigh(
    check: str, trials: Sequence[Trial], utility: Utility, limits: Mapping[str, Limit]
) -> Iterator[TradeOff]:
    """Yield what one limit costs, if it costs something."""
    passing = [each for each in trials if each.outcome == "PASS"]
    keeping = passing or [each for each in trials if check not in each.broken]
    best = max(keeping, key=lambda each: share_of(each, utility), default=None)
    floor = -math.inf
    if best is not None:
        # Without a passing setting, an equally useful one that breaks this limit counts as well.
        floor = share_of(best, utility) + (EQUAL_UTILITY if passing else -EQUAL_UTILITY)
    broken = [
        each
        for each in trials
        if is_beyond(each, check, limits[check]) and share_of(each, utility) > floor
    ]
    if not broken:
        return
    alone = [each for each in broken if len(each.broken) == 1]
    chosen = [pick(alone or broken, check, utility, limits[check])]
    top = max(broken, key=lambda each: share_of(each, utility))
    if share_of(top, utility) > share_of(chosen[0], utility) + EQUAL_UTILITY:
        chosen.append(top)
    most = max(each.records for each in trials)
    yield TradeOff(
        check=check,
        limit=format_value(broken[0], check, limits[check]),
        utility=describe_utility(best, utility),
        is_alone=best is not None and not passing,
        offers=tuple(make_offer(each, check, utility, limits, most) for each in chosen),
    )


def list_failed_checks(trials: Sequence[Trial], named: set[str]) -> Iterator[TradeOff]:
    """Yield the checks without a trade-off that every setting fails, with the reason."""
    for finding in trials[0].findings if trials else ():
        if finding.check in named or any(finding.check not in each.broken for each in trials):
            continue
        yield TradeOff(check=finding.check, limit="", utility="", why=finding.why)


def pick(found: Sequence[Trial], check: str, utility: Utility, limit: Limit) -> Trial:
    """Return the most useful of modest changes of a limit, else the smallest change."""
    factors = [(compute_factor(trial, check, limit), trial) for trial in found]
    modest = [trial for factor, trial in factors if factor <= MODEST_FACTOR]
    if modest:
        return max(modest, key=lambda trial: share_of(trial, utility))
    return min(factors, key=lambda pair: (pair[0], -share_of(pair[1], utility)))[1]


def compute_factor(trial: Trial, check: str, limit: Limit) -> float:
    """Return how many times as large a limit must be; infinity if no value of it helps."""
    return compute_need(trial, check, limit) / limit.value if limit.value > 0 else math.inf


def is_beyond(trial: Trial, check: str, limit: Limit) -> bool:
    """Return whether a trial breaks a limit by its value, so that another value would allow it."""
    if check not in trial.broken:
        return False
    if check.startswith(AMPLIFICATION):
        return True
    score = trial.find_score(check)
    if score is None:
        return False
    line = limit.value if limit.review is None else limit.review
    reached, need = (compute_limit(score, limit, each) for each in (line, find_need(score, limit)))
    return need > reached if score.better == "down" else need < reached


def compute_need(trial: Trial, check: str, limit: Limit) -> float:
    """Return the value of a limit that a setting would keep; infinity if there is none."""
    if check.startswith(AMPLIFICATION):
        return find_gamma(trial, check)
    score = trial.find_score(check)
    return math.inf if score is None else find_need(score, limit)


def find_need(score: Score, limit: Limit) -> float:
    """Return the value of a limit that a score would keep."""
    _, unfavourable = compute_distances(score, limit)
    is_reached = score.better == "up" and (score.kind == "utility" or limit.absolute)
    return -unfavourable if is_reached else unfavourable


def make_offer(
    trial: Trial, check: str, utility: Utility, limits: Mapping[str, Limit], most: int
) -> Offer:
    """Return a setting that breaks a limit, with everything that would have to change.

    ``most`` is the number of records that finalists were measured on.
    """
    others = [
        format_other(trial, other, limits.get(other)) for other in trial.broken if other != check
    ]
    return Offer(
        setting=trial.setting.digest,
        gained=describe_utility(trial, utility),
        needed=format_need(trial, check, limits[check]),
        others=tuple(others),
        records=trial.records if trial.records < most else 0,
    )


def format_other(trial: Trial, check: str, limit: Limit | None) -> str:
    """Return what would have to change of a further check that a setting does not pass."""
    if limit is None or not is_beyond(trial, check, limit):
        return f"{check}, which it does not pass"
    return f"{check} {format_need(trial, check, limit)}"


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
    band = "" if limit.review is None else f" (reviewed from {limit.review:.3g} on)"
    if not is_share(score):
        return f"{format_limit(score, limit)}{band}"
    side = "at most" if score.better == "down" else "at least"
    above = "" if limit.absolute else " above the baseline"
    return f"{side} {100 * limit.value:.3g} %{above}{band}"


def format_need(trial: Trial, check: str, limit: Limit) -> str:
    """Return what a limit would have to be for a setting to keep it, in words."""
    score, need = trial.find_score(check), compute_need(trial, check, limit)
    if not math.isfinite(need):
        return f"with a waiver for {trial.setting.method} (no bound)"
    if score is None:
        return f"at {round_up(need):,.0f}"
    factor, unit = (100.0, " %") if is_share(score) else (1.0, "")
    return f"at {round_need(factor * need, score):g}{unit}"


def round_need(value: float, score: Score) -> float:
    """Return a value of a limit in three digits that a score still keeps."""
    if value <= 0:
        return math.floor(value * 10) / 10
    is_reached = score.kind == "utility" and score.better == "up"
    return round_down(value) if is_reached else round_up(value)
