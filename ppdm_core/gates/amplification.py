from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.gates._gate import Evidence
from ppdm_core.guarantee import in_words
from ppdm_core.policy import Limit
from ppdm_core.types import Guarantee
from ppdm_core.verdict import Finding

PREFIX = "amplification."
FIGURES = {"component": "ln_component", "attribute": "ln_attribute", "record": "ln_record"}


@dataclass(frozen=True)
class Amplification:
    """Limits on gamma: by how much a released row may change anybody's odds."""

    name: ClassVar[str] = "amplification"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        limits = {k: v for k, v in evidence.policy.limits.items() if k.startswith(PREFIX)}
        for key, limit in limits.items():
            yield judge(key, limit, evidence.guarantee, evidence.method)
        if evidence.guarantee.kind == "empirical" and not limits:
            yield Finding(
                f"{PREFIX}record",
                "FAIL",
                f"{evidence.method} has no worst-case bound, and no amplification limit waives it.",
                in_words(evidence.guarantee.ln_record),
            )


def judge(key: str, limit: Limit, guarantee: Guarantee, method: str) -> Finding:
    unit = key.removeprefix(PREFIX)
    ln_gamma = getattr(guarantee, FIGURES[unit]) if unit in FIGURES else math.nan
    observed, allowed = in_words(ln_gamma), f"at most {limit.value:,.0f}"
    if guarantee.kind == "empirical":
        waived = method in limit.waive
        why = (
            f"{method} has no worst-case bound; {limit.set_by} waived it: {limit.reason}."
            if waived
            else f"{method} has no worst-case bound, so no limit on amplification can hold."
        )
        return Finding(key, "PASS" if waived else "FAIL", why, observed, allowed)
    kept = limit.value > 0 and ln_gamma <= math.log(limit.value)  # NaN keeps nothing
    why = (
        f"One released row changes the odds of any statement about a {unit} by at most "
        f"{observed}; the limit is {limit.value:,.0f} ({limit.set_by})."
    )
    return Finding(key, "PASS" if kept else "FAIL", why, observed, allowed)
