"""The gate on amplification."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.model.advice import Advice
from ppdm_core.model.policy import AMPLIFICATION as PREFIX
from ppdm_core.model.policy import UNDECIDED, Limit
from ppdm_core.model.release import Guarantee
from ppdm_core.model.verdict import Finding
from ppdm_core.numerics.amplification import format_gamma

NO_ADVICE = Advice()
FIGURES = {"component": "ln_component", "attribute": "ln_attribute", "record": "ln_record"}


class Amplification(Gate):
    """Limits on gamma: by how much a released row may change the odds of a statement."""

    name = "amplification"
    judges_settings = True

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        limits = {k: v for k, v in gate_input.policy.limits.items() if k.startswith(PREFIX)}
        for key, limit in limits.items():
            yield judge(key, limit, gate_input.guarantee, gate_input.method, gate_input.advice)
        if gate_input.guarantee.kind == "empirical" and not limits:
            names = " and ".join(list_unbounded(gate_input.guarantee, gate_input.method))
            yield Finding(
                f"{PREFIX}record",
                "FAIL",
                f"{names} has no worst-case bound, and no amplification limit waives it.",
                format_gamma(gate_input.guarantee.ln_record),
                remedy=explain_waiver(names, f"{PREFIX}record"),
            )


def explain_waiver(names: str, key: str) -> str:
    """Return what helps where a method has no bound."""
    return (
        f"What helps: choose a method with a bound, or set a limit on {key} with {names} in "
        "'waive', which accepts that there is none."
    )


def list_unbounded(guarantee: Guarantee, method: str) -> tuple[str, ...]:
    """Return the methods that a waiver must name: for a pipeline, the methods inside it."""
    return guarantee.without_bound or (method,)


def judge(
    key: str, limit: Limit, guarantee: Guarantee, method: str, advice: Advice = NO_ADVICE
) -> Finding:
    """Judge one limit on gamma."""
    unit = key.removeprefix(PREFIX)
    ln_gamma = getattr(guarantee, FIGURES[unit]) if unit in FIGURES else math.nan
    observed, allowed = format_gamma(ln_gamma), f"at most {limit.value:,.0f}"
    if guarantee.kind == "empirical":
        names = list_unbounded(guarantee, method)
        waived = set(names) <= set(limit.waive)
        remedy = "" if waived else explain_waiver(" and ".join(names), key)
        why = f"{' and '.join(names)} has no worst-case bound" + (
            f"; waived ({limit.origin})." if waived else ", so no limit on amplification can hold."
        )
        return Finding(key, "PASS" if waived else "FAIL", why, observed, allowed, remedy)
    why = (
        f"One released row changes the odds of any statement about a {unit} by at most "
        f"{observed}; the limit is {limit.value:,.0f} ({limit.set_by or UNDECIDED})."
    )
    line = limit.value if limit.review is None else limit.review
    remedy = f"For a PASS, gamma must be at most {line:,.0f}. {advice.describe_more_private()}"
    if not keeps(ln_gamma, limit.value):
        return Finding(key, "FAIL", why, observed, allowed, remedy)
    if limit.review is not None and not keeps(ln_gamma, limit.review):
        why += f" A reviewer decides from {limit.review:,.0f} on."
        return Finding(key, "REVIEW", why, observed, allowed, remedy)
    return Finding(key, "PASS", why, observed, allowed)


def keeps(ln_gamma: float, line: float) -> bool:
    """Return whether gamma is at most the limit."""
    return line > 0 and ln_gamma <= math.log(line)  # NaN keeps nothing
