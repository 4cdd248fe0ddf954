"""The smallest limits that a table of some size can certify, even if every attack fails."""

from __future__ import annotations

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.singling_out import MAX_STATEMENTS
from ppdm_core.audit.evaluators import GOALS_WITH_OUTSIDERS
from ppdm_core.audit.simulation import MAX_HALF_TARGETS, MAX_SCORED_RECORDS, MAX_TARGETS
from ppdm_core.metrics import METRICS
from ppdm_core.metrics.true_positive_rate import TruePositiveRate
from ppdm_core.model.policy import AMPLIFICATION, LABEL, LEDGER, Policy
from ppdm_core.numerics.intervals import clopper_pearson


def compute_smallest_limits(policy: Policy, n: int) -> dict[str, float]:
    """Return the upper interval end of each limited rate for an attack that finds nothing."""
    found = {}
    for name, limit in policy.limits.items():
        attack, metric = name.split(".")[0], METRICS.get(name.split(".")[-1])
        if attack not in ATTACKS or metric is None:
            continue
        persons = count_scored_persons(policy, n, ATTACKS[attack].goal)
        if metric.interval_method == "mean" and metric.bounds == (0.0, 1.0):
            found[name] = clopper_pearson(0.0, persons, policy.pass_level)[1] if persons else 1.0
        elif isinstance(metric, TruePositiveRate):
            high, baseline = (
                bound_blind_attack(metric, policy, n, persons) if persons else (1.0, 0.0)
            )
            found[name] = high if limit.absolute else high - baseline
    return found


def bound_blind_attack(
    metric: TruePositiveRate, policy: Policy, n: int, persons: int
) -> tuple[float, float]:
    """Return the upper interval end of an attacker who guesses, and the baseline."""
    t = count_half_targets(policy, n)
    is_member = np.repeat([True, False], t)
    one = np.tile(np.arange(t, dtype=np.float64), 2), is_member
    _, high = metric.interval([one], persons, persons, policy.pass_level)
    return high, metric.baseline(is_member)


def count_judged_scores(policy: Policy) -> int:
    """Return the number of scores with an interval that a limit judges."""
    return max(1, sum(1 for key in policy.limits if not is_exact(key)))


def is_exact(key: str) -> bool:
    """Return whether the figure of a limit has no sampling error."""
    metric = METRICS.get(key.split(".")[-1])
    is_fact = metric is not None and metric.interval_method == "none"
    return is_fact or key.startswith((AMPLIFICATION, LEDGER, f"{LABEL}."))


def count_scored_persons(policy: Policy, n: int, goal: str) -> int:
    """Return how many persons an attack is scored on."""
    if goal == "single_out":
        return min(MAX_STATEMENTS[policy.effort], n // 2)
    if goal in GOALS_WITH_OUTSIDERS:
        t = count_half_targets(policy, n)
        if goal == "member":  # as many as would be as sure, each in one half
            return int(policy.splits * t / (1 + (policy.splits - 1) * t / n))
        return int(n * (1.0 - (1.0 - t / n) ** policy.splits))  # in one half or more
    unknown = n - policy.attacker.known_records - round(policy.attacker.sample_share * n)
    return max(0, min(unknown, MAX_TARGETS if goal in ("link", "source") else MAX_SCORED_RECORDS))


def count_half_targets(policy: Policy, n: int) -> int:
    """Return the number of targets inside a half; there are as many outside."""
    inside, outside = n // 2 - policy.attacker.known_records, n - n // 2
    return max(0, min(inside, outside - outside // 3, MAX_HALF_TARGETS))
