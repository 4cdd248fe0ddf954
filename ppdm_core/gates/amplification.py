from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.gates._gate import Evidence
from ppdm_core.model.policy import Limit
from ppdm_core.model.release import Guarantee
from ppdm_core.model.verdict import Finding
from ppdm_core.numerics.amplification import in_words

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
            names = " and ".join(without_bound(evidence.guarantee, evidence.method))
            yield Finding(
                f"{PREFIX}record",
                "FAIL",
                f"{names} has no worst-case bound, and no amplification limit waives it.",
                in_words(evidence.guarantee.ln_record),
            )


def without_bound(guarantee: Guarantee, method: str) -> tuple[str, ...]:
    """The names that a waiver must give. Whoever waives a pipeline does not know what is in it, so
    they are those of the methods inside."""
    return guarantee.without_bound or (method,)


def judge(key: str, limit: Limit, guarantee: Guarantee, method: str) -> Finding:
    unit = key.removeprefix(PREFIX)
    ln_gamma = getattr(guarantee, FIGURES[unit]) if unit in FIGURES else math.nan
    observed, allowed = in_words(ln_gamma), f"at most {limit.value:,.0f}"
    if guarantee.kind == "empirical":
        names = without_bound(guarantee, method)
        waived = set(names) <= set(limit.waive)
        why = f"{' and '.join(names)} has no worst-case bound" + (
            f"; {limit.set_by} waived it: {limit.reason}."
            if waived
            else ", so no limit on amplification can hold."
        )
        return Finding(key, "PASS" if waived else "FAIL", why, observed, allowed)
    why = (
        f"One released row changes the odds of any statement about a {unit} by at most "
        f"{observed}; the limit is {limit.value:,.0f} ({limit.set_by})."
    )
    if not keeps(ln_gamma, limit.value):
        return Finding(key, "FAIL", why, observed, allowed)
    if limit.review is not None and not keeps(ln_gamma, limit.review):
        why += f" People decide from {limit.review:,.0f} on."
        return Finding(key, "REVIEW", why, observed, allowed)
    return Finding(key, "PASS", why, observed, allowed)


def keeps(ln_gamma: float, line: float) -> bool:
    return line > 0 and ln_gamma <= math.log(line)  # NaN keeps nothing
