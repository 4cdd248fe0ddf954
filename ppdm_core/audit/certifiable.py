"""What a table of some size can certify at best: not a single hit in n still leaves a risk."""

from __future__ import annotations

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.singling_out import STATEMENTS
from ppdm_core.audit.evaluators import OUTSIDERS_NEEDED
from ppdm_core.audit.simulation import MOST_OF_A_HALF, MOST_SCORED, MOST_TARGETS
from ppdm_core.metrics import METRICS
from ppdm_core.metrics.true_positive_rate import TruePositiveRate
from ppdm_core.model.policy import Policy
from ppdm_core.numerics.intervals import wilson


def smallest_limits(policy: Policy, n: int) -> dict[str, float]:
    """For each limited rate, what its interval reaches up to when the attack fails altogether."""
    found = {}
    for name, limit in policy.limits.items():
        attack, metric = name.split(".")[0], METRICS.get(name.split(".")[-1])
        if attack not in ATTACKS or metric is None:
            continue
        people = judged_people(policy, n, ATTACKS[attack].goal)
        if metric.is_rate:
            found[name] = wilson(0.0, people, judged_level(policy))[1] if people else 1.0
        elif isinstance(metric, TruePositiveRate):
            high, baseline = blind(metric, policy, n, people) if people else (1.0, 0.0)
            found[name] = high if limit.absolute else high - baseline
    return found


def blind(
    metric: TruePositiveRate, policy: Policy, n: int, people: int
) -> tuple[float, float]:  # and the baseline
    """What the interval of somebody who tells members no better than others leaves possible."""
    t = of_a_half(policy, n)
    is_member = np.repeat([True, False], t)
    one = np.tile(np.arange(t, dtype=np.float64), 2), is_member
    _, high = metric.interval([one], people, people, judged_level(policy))
    return high, metric.baseline(is_member)


def judged_level(policy: Policy) -> float:
    """Intervals are widened for the number of scores that a limit judges."""
    gated = sum(1 for key in policy.limits if not key.startswith(("amplification.", "ledger.")))
    return 1.0 - (1.0 - policy.level) / max(1, gated)


def judged_people(policy: Policy, n: int, goal: str) -> int:
    """How many people an attack is scored on."""
    if goal == "single_out":
        return min(STATEMENTS[policy.effort], n // 2)
    if goal in OUTSIDERS_NEEDED:
        t = of_a_half(policy, n)
        # Some of them are met in several splits, and count once.
        return int(policy.splits * t / (1 + (policy.splits - 1) * t / n))
    unknown = n - policy.attacker.known_records - round(policy.attacker.sample_share * n)
    return max(0, min(unknown, MOST_TARGETS if goal in ("link", "source") else MOST_SCORED))


def of_a_half(policy: Policy, n: int) -> int:
    """Members that are looked for in a split, and as many others."""
    inside, outside = n // 2 - policy.attacker.known_records, n - n // 2
    return max(0, min(inside, outside - outside // 3, MOST_OF_A_HALF))
