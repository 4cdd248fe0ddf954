"""What a table of some size can certify at best: not a single hit in n still leaves a risk."""

from __future__ import annotations

from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.singling_out import STATEMENTS
from ppdm_core.intervals import wilson
from ppdm_core.metrics import METRICS
from ppdm_core.play import MOST_OF_A_HALF, MOST_SCORED, MOST_TARGETS
from ppdm_core.policy import Policy
from ppdm_core.scorers import OUTSIDERS_NEEDED


def smallest_limits(policy: Policy, n: int) -> dict[str, float]:
    """For each limited rate, what its interval reaches up to when the attack fails altogether."""
    found = {}
    for name in policy.limits:
        attack, metric = name.split(".")[0], METRICS.get(name.split(".")[-1])
        if attack in ATTACKS and metric is not None and metric.is_rate:
            people = judged_people(policy, n, ATTACKS[attack].goal)
            found[name] = wilson(0.0, people, judged_level(policy))[1] if people else 1.0
    return found


def judged_level(policy: Policy) -> float:
    """Intervals are widened for the number of scores that a limit judges."""
    gated = sum(1 for key in policy.limits if not key.startswith("amplification."))
    return 1.0 - (1.0 - policy.level) / max(1, gated)


def judged_people(policy: Policy, n: int, goal: str) -> int:
    """How many people an attack is scored on."""
    known = policy.attacker.known_records
    if goal == "single_out":
        return min(STATEMENTS[policy.effort], n // 2)
    if goal in OUTSIDERS_NEEDED:
        inside, outside = n // 2 - known, n - n // 2
        t = max(0, min(inside, outside - outside // 3, MOST_OF_A_HALF))
        # Some of them are met in several splits, and count once.
        return int(policy.splits * t / (1 + (policy.splits - 1) * t / n))
    unknown = n - known - round(policy.attacker.sample_share * n)
    return max(0, min(unknown, MOST_TARGETS if goal in ("link", "source") else MOST_SCORED))
