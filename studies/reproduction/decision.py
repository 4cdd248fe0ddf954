"""How measured quantities decide a claim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from studies.reproduction.registry import Claim

LEVEL = 0.99
ROUNDING_SHARE = 1e-9  # of a limit: floats that differ by less are equal


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    PART = "in part"
    FAILS = "does not hold"
    OPEN = "cannot be decided"


@dataclass(frozen=True)
class Decided:
    """One quantity with the range that the paper claims for it."""

    quantity: str
    value: float
    low: float  # of the interval
    high: float
    draws: int
    claimed: tuple[float, float]  # with the tolerance
    is_true: bool | None  # None: open


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim."""

    claim: Claim
    verdict: Verdict
    decided: Sequence[Decided]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return the number of true, false and open statements."""
        each = [item.is_true for item in self.decided]
        return each.count(True), each.count(False), each.count(None)


def compute_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean and 99 % interval of draws; a single draw has no width."""
    from scipy.stats import t

    n, mean = len(values), math.fsum(values) / len(values)
    if n == 1:
        return mean, mean, mean
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = float(t.ppf((1 + LEVEL) / 2, n - 1)) * spread / math.sqrt(n)
    return mean, mean - half, mean + half


def decide_range(low: float, high: float, claimed: tuple[float, float]) -> bool | None:
    """Return whether an interval is within the claimed range, outside it, or neither (None)."""
    first, last = claimed
    if low >= first - slack(first) and high <= last + slack(last):
        return True
    if high < first - slack(first) or low > last + slack(last):
        return False
    return None


def slack(limit: float) -> float:
    """Return the rounding error that is no difference."""
    return ROUNDING_SHARE * abs(limit) if math.isfinite(limit) else 0.0


def decide_statements(claim: Claim, quantities: Mapping[str, Sequence[float]]) -> Iterator[Decided]:
    """Yield every quantity that a statement of the claim matches."""
    for statement in claim.statements:
        claimed = statement.low - claim.tolerance, statement.high + claim.tolerance
        for name, values in quantities.items():
            if fnmatchcase(name, statement.quantity):
                value, low, high = compute_interval(values)
                is_true = decide_range(low, high, claimed)
                yield Decided(name, value, low, high, len(values), claimed, is_true)


def decide_again(claim: Claim, measured: Sequence[Decided]) -> Finding:
    """Return the verdict on a claim by its present rule, from intervals of an earlier run."""
    found = []
    for statement in claim.statements:
        claimed = statement.low - claim.tolerance, statement.high + claim.tolerance
        for each in measured:
            if fnmatchcase(each.quantity, statement.quantity):
                is_true = decide_range(each.low, each.high, claimed)
                found.append(replace(each, claimed=claimed, is_true=is_true))
    return make_finding(claim, tuple(found))


def decide_claim(claim: Claim, quantities: Mapping[str, Sequence[float]]) -> Finding:
    """Return the verdict on a claim, given all quantities of its measurements."""
    return make_finding(claim, tuple(decide_statements(claim, quantities)))


def make_finding(claim: Claim, decided: Sequence[Decided]) -> Finding:
    """Return the verdict that follows from the statements."""
    finding = Finding(claim, Verdict.OPEN, decided)
    return Finding(claim, judge(claim, *finding.counts), decided)


def judge(claim: Claim, true: int, false: int, still_open: int) -> Verdict:
    """Return the verdict from the numbers of true, false and open statements."""
    total = true + false + still_open
    if total == 0:
        return Verdict.OPEN
    needed = math.ceil(claim.needs * total - ROUNDING_SHARE)
    if true >= needed:
        return Verdict.HOLDS
    if true + still_open >= needed:
        return Verdict.OPEN
    if true + still_open < claim.part * total:
        return Verdict.FAILS
    return Verdict.PART if true else Verdict.OPEN
