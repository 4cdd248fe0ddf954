from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.gates._gate import Evidence
from ppdm_core.model.ledger import Account
from ppdm_core.model.policy import LEDGER_DRAWS as DRAWS
from ppdm_core.model.policy import LEDGER_RECORD as RECORD
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.verdict import Finding, Outcome
from ppdm_core.numerics.amplification import figure, in_words

LEDGER = "ledger."
ROUNDING = 1e-9  # of ln gamma: more than adding up can lose, far less than anybody's limit says


@dataclass(frozen=True)
class Ledger:
    """Limits on what all releases of a dataset add up to, for the record that is worst off."""

    name: ClassVar[str] = "ledger"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        account, limits = evidence.account, evidence.policy.limits
        for key in limits:
            if key.startswith(LEDGER) and key not in (RECORD, DRAWS):
                yield Finding(key, "FAIL", f"The ledger has no figure {key}.")
        if account is None or not is_sound(account):
            why = "What earlier releases of this dataset have spent is not known."
            yield Finding(RECORD, "FAIL", why)
            return
        yield judge_product(account, evidence.policy)
        if DRAWS in limits:
            yield judge_draws(account, limits[DRAWS])


def is_sound(account: Account) -> bool:
    """NaN keeps no order."""
    counts = (account.records, account.draws_spent, account.draws_after - account.draws_spent)
    return (
        0 <= account.spent <= account.after <= account.spent + account.asked + ROUNDING
        and min(counts) >= 0
    )


def judge_product(account: Account, policy: Policy) -> Finding:
    """Of the gammas of all draws of one record."""
    observed, limit = in_words(account.after), policy.limits.get(RECORD)
    told = f"{story(account)}; together {observed}."
    if limit is None:
        return Finding(RECORD, "PASS", f"{told} Nobody set a limit.", observed)
    line = math.log(limit.value) if limit.value > 0 else -math.inf  # NaN keeps nothing
    why = f"{told} Limit: {in_digits(limit.value)} ({limit.set_by}: {limit.reason})."
    if limit.waive:
        why += f" Rows by {' and '.join(limit.waive)} are not counted here."
    if policy.collusion_waiver:
        why += f" Audiences are counted apart: {policy.collusion_waiver}."
    outcome = "FAIL" if account.unbounded else outcome_of(account.after, limit, line)
    if outcome == "FAIL":
        why += no_room(account, account.over)
    elif account.asked > 0:
        why += room(account, math.floor((line - account.after + ROUNDING) / account.asked))
    if account.unbounded:
        why += without_bound(account)
    return Finding(RECORD, outcome, why, observed, f"at most {limit.value:g}")


def story(account: Account) -> str:
    spent = (
        "Nobody was charged so far"
        if account.spent == 0
        else "All releases so far change the odds of any statement about a record by "
        f"{up_to(account.spent)}"
    )
    if not account.records:
        return f"{spent}, and this one draws nobody anew"
    asked = f"this one asks for {up_to(account.asked)}"
    return f"{spent}, and {asked} for {counted(account.records, 'record')} that it draws anew"


def up_to(ln_gamma: float) -> str:
    return "any factor (unbounded)" if math.isinf(ln_gamma) else f"up to {figure(ln_gamma)}"


def in_digits(gamma: float) -> str:
    """As the limit stands in the file and, if that is large, as figures are told."""
    large = gamma >= 1e6
    return f"{gamma:g}, which is {figure(math.log(gamma))}" if large else f"{gamma:,.0f}"


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def no_room(account: Account, over: int) -> str:
    has = "has" if over == 1 else "have"
    told = f" {counted(over, 'record')} {has} no room for it; nobody was charged."
    return told + room(account, 0)


def outcome_of(after: float, limit: Limit, line: float) -> Outcome:
    if not after <= line + ROUNDING:
        return "FAIL"
    if limit.review is not None and not after <= math.log(max(limit.review, 1.0)) + ROUNDING:
        return "REVIEW"
    return "PASS"


def room(account: Account, times: int) -> str:
    who = "A record that changes every time has" if account.has_ids else "There is"
    return f" {who} room for {counted(times, 'more such release')}."


def without_bound(account: Account) -> str:
    names = " and ".join(account.unbounded)
    return (
        f" Rows by {names} were drawn without a worst-case bound, so that no limit on the product "
        f"of gammas can hold. Name {names} in 'waive' of {RECORD}, and limit {DRAWS} instead."
    )


def judge_draws(account: Account, limit: Limit) -> Finding:
    """Of methods without a bound."""
    observed, allowed = f"{account.draws_after:,}", f"at most {limit.value:,.0f}"
    why = (
        f"Of one record up to {counted(account.draws_spent, 'row')} without a worst-case bound "
        f"were drawn so far, with this release up to {observed}. Limit: {limit.value:,.0f} "
        f"({limit.set_by}: {limit.reason})."
    )
    if not account.draws_after <= limit.value:
        return Finding(DRAWS, "FAIL", why + no_room(account, account.draws_over), observed, allowed)
    asked = account.draws_after - account.draws_spent
    if asked:
        why += room(account, math.floor((limit.value - account.draws_after) / asked))
    is_kept = limit.review is None or account.draws_after <= limit.review
    return Finding(DRAWS, "PASS" if is_kept else "REVIEW", why, observed, allowed)
