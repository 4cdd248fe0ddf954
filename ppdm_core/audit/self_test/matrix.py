"""Which attack or metric must notice which planted leak: read from their ``must_notice``."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ppdm_core.attacks import ATTACKS
from ppdm_core.metrics import METRICS
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy

REPETITIONS = 20  # trials of each leak
MAX_ALARMS = 3  # of the trials on noise
LEAK_SCAN = "leak_scan"  # not an attack: the scan of the rows that are to be published
LEAK_SCAN_MUST_NOTICE: Mapping[str, float] = {"verbatim rows": 0.85}


def find_leaks(name: str) -> Mapping[str, float]:
    """Return the leaks that an attack or metric must notice, with the least share of the trials."""
    if name == LEAK_SCAN:
        return LEAK_SCAN_MUST_NOTICE
    audited = ATTACKS.get(name) or METRICS.get(name)
    return {} if audited is None else audited.must_notice


def count_needed(share: float) -> int:
    """Return the number of trials in which a leak must be noticed."""
    return math.ceil(share * REPETITIONS)


def list_tested() -> tuple[str, ...]:
    """Return every attack, metric and scan that has a planted leak."""
    return tuple(name for name in (*ATTACKS, *METRICS, LEAK_SCAN) if find_leaks(name))


def list_limited(policy: Policy) -> tuple[str, ...]:
    """Return the attacks that a limit judges."""
    names = {limit.split(".")[0] for limit in policy.limits}
    return tuple(name for name in ATTACKS if name in names)


def list_relied_on(policy: Policy) -> tuple[str, ...]:
    """Return what a verdict rests on: required attacks, limited attacks, and the leak scan."""
    names = {*policy.required, *list_limited(policy)}
    return (*(name for name in ATTACKS if name in names), LEAK_SCAN)


def check_provable(policy: Policy) -> None:
    """Check that each attack that a verdict rests on declares a leak that it must notice."""
    for name in list_relied_on(policy):
        if not find_leaks(name):
            raise BadInput(
                f"The attack {name} cannot be required or limited: it declares no planted leak "
                "that it must notice.",
                remedy=f"Remove {name} from 'required' in [audit] and from the limits, or declare "
                "'must_notice' in its class.",
            )
