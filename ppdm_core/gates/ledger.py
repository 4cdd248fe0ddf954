"""The gate on the sum over all releases."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.model.advice import Advice
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.policy import LEDGER, Limit, Policy
from ppdm_core.model.policy import LEDGER_DRAWS as DRAWS
from ppdm_core.model.policy import LEDGER_RECORD as RECORD
from ppdm_core.model.verdict import Finding, Outcome
from ppdm_core.numerics.amplification import format_gamma, format_gamma_value

ROUNDING_MARGIN = 1e-9  # of ln gamma: more than a sum can lose


class Ledger(Gate):
    """Limits on what all releases of a dataset add up to, for the most exposed record."""

    name = "ledger"

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        balance, limits = gate_input.balance, gate_input.policy.limits
        for key in limits:
            if key.startswith(LEDGER) and key not in (RECORD, DRAWS):
                yield Finding(key, "FAIL", f"The ledger has no figure {key}.")
        if balance is None or not is_sound(balance):
            why = "What earlier releases of this dataset have spent is not known."
            yield Finding(RECORD, "FAIL", why)
            return
        yield from judge_balance(balance, gate_input.policy, gate_input.advice)


def judge_balance(balance: LedgerBalance, policy: Policy, advice: Advice) -> Iterator[Finding]:
    """Yield the findings about a sound balance."""
    yield judge_product(balance, policy, advice)
    if DRAWS in policy.limits:
        yield judge_draws(balance, policy.limits[DRAWS])


def is_sound(balance: LedgerBalance) -> bool:
    """Return whether the figures are in order; NaN is not."""
    counts = (balance.records, balance.draws_spent, balance.draws_after - balance.draws_spent)
    return (
        0 <= balance.spent <= balance.after <= balance.spent + balance.asked + ROUNDING_MARGIN
        and min(counts) >= 0
    )


def judge_product(balance: LedgerBalance, policy: Policy, advice: Advice) -> Finding:
    """Judge the product of the gammas of all draws of one record."""
    observed, limit = format_gamma(balance.after), policy.limits.get(RECORD)
    summary = f"{describe_balance(balance)}; together {observed}."
    if limit is None:
        return Finding(RECORD, "PASS", f"{summary} No limit is set.", observed)
    line = math.log(limit.value) if limit.value > 0 else -math.inf  # NaN keeps nothing
    why = f"{summary} Limit: {format_limit(limit.value)} ({limit.origin})."
    if limit.waive:
        why += f" Draws without a bound by {' and '.join(limit.waive)} are not counted here."
    if policy.collusion_waiver:
        why += f" Each audience is counted separately: {policy.collusion_waiver}."
    outcome = "FAIL" if balance.unbounded else judge_outcome(balance.after, limit, line)
    if outcome == "FAIL":
        why += describe_lack(balance, balance.over)
    elif balance.asked > 0:
        left = (line - balance.after + ROUNDING_MARGIN) / balance.asked
        why += describe_room(balance, math.floor(left))
    if balance.unbounded:
        why += describe_unbounded(balance)
    remedy = "" if outcome == "PASS" else explain_remedy(balance, limit, advice)
    return Finding(RECORD, outcome, why, observed, f"at most {limit.value:g}", remedy)


def explain_remedy(balance: LedgerBalance, limit: Limit, advice: Advice) -> str:
    """Return what a release may ask for at most, and what helps to ask for less."""
    if balance.unbounded:
        return ""  # the finding names the waiver
    line = math.log(max(limit.value if limit.review is None else limit.review, 1.0))
    room = max(0.0, line - balance.spent)
    needed = f"For a PASS, this release may ask for at most {format_gamma_value(room)}"
    if not room:
        return f"{needed}: raise the limit, or release only records that did not change."
    return f"{needed}. {advice.describe_more_private('raise the limit')}"


def describe_balance(balance: LedgerBalance) -> str:
    """Return a sentence on what was spent and what this release asks for."""
    spent = (
        "No record was charged so far"
        if balance.spent == 0
        else "All releases so far change the odds of any statement about a record by "
        f"{format_bound(balance.spent)}"
    )
    if not balance.records:
        return f"{spent}, and this one redraws no record"
    asked = f"this one asks for {format_bound(balance.asked)}"
    return f"{spent}, and {asked} for {format_count(balance.records, 'record')} that it redraws"


def format_bound(ln_gamma: float) -> str:
    """Return the largest factor, in words."""
    if math.isinf(ln_gamma):
        return "any factor (unbounded)"
    return f"up to {format_gamma_value(ln_gamma)}"


def format_limit(gamma: float) -> str:
    """Return the limit as it is in the file and, if it is large, also as figures are shown."""
    if gamma >= 1e6:
        return f"{gamma:g}, which is {format_gamma_value(math.log(gamma))}"
    return f"{gamma:,.0f}"


def format_count(count: int, what: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def describe_lack(balance: LedgerBalance, over: int) -> str:
    """Return a sentence on the records that have no room for this release."""
    has = "has" if over == 1 else "have"
    lack = f" {format_count(over, 'record')} {has} no room for it; no record was charged."
    return lack + describe_room(balance, 0)


def judge_outcome(after: float, limit: Limit, line: float) -> Outcome:
    """Return the outcome of a sum against a limit and its review band."""
    if not after <= line + ROUNDING_MARGIN:
        return "FAIL"
    if limit.review is not None and not after <= math.log(max(limit.review, 1.0)) + ROUNDING_MARGIN:
        return "REVIEW"
    return "PASS"


def describe_room(balance: LedgerBalance, times: int) -> str:
    """Return a sentence on how many more such releases fit."""
    who = "A record that changes every time has" if balance.has_ids else "There is"
    return f" {who} room for {format_count(times, 'more such release')}."


def describe_unbounded(balance: LedgerBalance) -> str:
    """Return a sentence on draws without a bound, and the remedy."""
    names = " and ".join(balance.unbounded)
    return (
        f" Draws by {names} have no worst-case bound, so that no limit on the product "
        f"of gammas can hold. Name {names} in 'waive' of {RECORD}, and limit {DRAWS} instead."
    )


def judge_draws(balance: LedgerBalance, limit: Limit) -> Finding:
    """Judge the number of draws by methods without a bound."""
    observed, allowed = f"{balance.draws_after:,}", f"at most {limit.value:,.0f}"
    why = (
        f"One record has up to {format_count(balance.draws_spent, 'draw')} without a worst-case "
        f"bound so far, with this release up to {observed}. Limit: {limit.value:,.0f} "
        f"({limit.origin})."
    )
    if not balance.draws_after <= limit.value:
        why += describe_lack(balance, balance.draws_over)
        remedy = (
            f"For a PASS, the limit must be at least {balance.draws_after:,}, or no record that "
            "was drawn that often may be drawn again. What helps: release only records that did "
            "not change, or choose a method with a bound."
        )
        return Finding(DRAWS, "FAIL", why, observed, allowed, remedy)
    asked = balance.draws_after - balance.draws_spent
    if asked:
        why += describe_room(balance, math.floor((limit.value - balance.draws_after) / asked))
    is_kept = limit.review is None or balance.draws_after <= limit.review
    return Finding(DRAWS, "PASS" if is_kept else "REVIEW", why, observed, allowed)
