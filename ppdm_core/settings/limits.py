"""Checks of limits: their names, and whether a score exists that they judge."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import (
    AMPLIFICATION,
    LABEL,
    LEDGER,
    LEDGER_DRAWS,
    LEDGER_RECORD,
    Limit,
)
from ppdm_core.settings.errors import suggest_name

AMPLIFICATION_LIMITS = (
    "amplification.record",
    "amplification.attribute",
    "amplification.component",
)
LEDGER_LIMITS = (LEDGER_RECORD, LEDGER_DRAWS)
SCORE_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){0,2}")  # attack, scenario, metric


def check_limit_name(name: str, waive: Collection[str] = ()) -> None:
    """Raise BadInput if a limit has a malformed name or a waiver that it cannot have."""
    known = {*AMPLIFICATION_LIMITS, *LEDGER_LIMITS}
    is_unknown = name.startswith((AMPLIFICATION, LEDGER)) and name not in known
    if is_unknown or not SCORE_NAME.fullmatch(name):
        raise BadInput(
            f"Unknown limit '{name}'.",
            remedy=suggest_name(name, {*known, "attack.metric", "metric"}),
        )
    if waive and name not in (*AMPLIFICATION_LIMITS, LEDGER_RECORD):
        raise BadInput(
            f"Limit '{name}' has a 'waive' key, which only limits on gamma have.",
            remedy="Remove 'waive'.",
        )


def check_limit(name: str, limit: Limit) -> None:
    """Check that there can be a score that the limit judges."""
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.audit.label_risk import LABEL_RATE
    from ppdm_core.metrics import CLASSIFIERS, METRICS
    from ppdm_core.metrics.deterioration import Deterioration

    check_value(name, limit)
    attack, metric = name.split(".")[0], METRICS.get(name.split(".")[-1])
    changes = [f"{each}.{Deterioration.name}" for each in CLASSIFIERS]
    is_of_release = "." in name and attack in METRICS
    if name not in changes and (is_of_release or (metric and metric.goal == "change")):
        raise BadInput(
            f"The limit on {name} can never be judged: there is no such score.",
            remedy=f"Use {attack if is_of_release else ' or '.join(changes)}.",
        )
    if attack == LABEL and name != LABEL_RATE:
        raise BadInput(
            f"The limit on {name} can never be judged: there is no such score.",
            remedy=f"Use {LABEL_RATE}.",
        )
    if metric and attack in ATTACKS and ATTACKS[attack].goal != metric.goal:
        measured = [each.name for each in METRICS.values() if each.goal == ATTACKS[attack].goal]
        raise BadInput(
            f"The limit on {name} can never be judged: no such score of {attack} exists.",
            remedy=f"Use {' or '.join(f'{attack}.{each}' for each in measured)}.",
        )
    if metric is not None and not metric.gateable:
        raise BadInput(
            f"The limit on {name} cannot be judged: {metric.name} is for information only.",
            remedy="Remove the limit; the figure is logged all the same.",
        )
    is_loss = metric is not None and (metric.kind, metric.better) == ("utility", "down")
    if is_loss and not limit.absolute:
        raise BadInput(
            f"The limit on {name} has no baseline that it could exceed.",
            remedy="Add absolute = true to it.",
        )
    check_review_band(name, limit)


def check_value(name: str, limit: Limit) -> None:
    """Check that a limit is a number that the figure which it judges can reach."""
    from ppdm_core.metrics import METRICS

    metric = METRICS.get(name.split(".")[-1])
    smallest = -math.inf
    if name.startswith((AMPLIFICATION, LEDGER)):
        smallest = 1.0
    elif metric is not None and metric.kind == "privacy":
        smallest = 0.0
    for key, value in {"value": limit.value, "review": limit.review}.items():
        if value is not None and not (math.isfinite(value) and value >= smallest):
            lowest = f"a number of at least {smallest:g}" if smallest > -math.inf else "a number"
            raise BadInput(
                f"The '{key}' key of limit '{name}' must be {lowest}. Got {value:g}.",
                remedy=f"Correct '{key}'.",
            )


def check_review_band(name: str, limit: Limit) -> None:
    """Check that the band that a reviewer decides on lies on the safe side of the limit."""
    from ppdm_core.gates.score_limits import orient_limit
    from ppdm_core.metrics import METRICS

    metric = METRICS.get(name.split(".")[-1])
    if limit.review is None:
        return
    lines = (limit.review, limit.value)
    careful, line = (
        lines if metric is None else (orient_limit(metric, limit, each) for each in lines)
    )
    if not careful < line:
        side = "below" if line == limit.value else "above"
        raise BadInput(
            f"The limit on {name} leaves nothing to review: its 'review' is not {side} its value.",
            remedy=f"Set 'review' {side} 'value', or remove it.",
        )
