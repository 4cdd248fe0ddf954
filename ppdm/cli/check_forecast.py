"""What `ppdm check` says of the release that would follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ppdm.cli.replies.checks import BadReleaseBody, ChargeBody, CostBody, PolicyCheckBody
from ppdm_core.gates.ledger import format_count
from ppdm_core.gates.self_test import describe_policy_check
from ppdm_core.model.policy import LEDGER_DRAWS, LEDGER_RECORD
from tasks.audit.cost_estimate import format_time

if TYPE_CHECKING:
    from ppdm.forecast.cost import ReleaseCost
    from ppdm.forecast.release import Forecast
    from tasks.audit.policy_forecast import PolicyForecast
    from tasks.context import ReleaseContext
    from tasks.judge.charge_forecast import ChargeForecast

DROPS = {"dropped_empty": "an empty cell in", "dropped_unlisted": "a category not listed in"}
CHANGES = {
    "clamped": "Cells that will be moved to the bounds of their column",
    "imputed": "Empty cells that will be filled with the median of their column",
    "other": 'Cells that are not listed and will become "other"',
}


def list_forecast_lines(context: ReleaseContext, forecast: Forecast) -> Iterator[str]:
    """Yield what will happen to the table, what it costs, and who will refuse it."""
    yield from list_changes(forecast.facts["changes"])
    yield from list_charge_lines(forecast.charge)
    yield from list_policy_lines(forecast.policy)
    cost = forecast.cost
    yield (
        f"Estimate for the release, which may be wrong by a factor of three: "
        f"{format_time(cost.seconds)}, {cost.memory_mb:,.0f} MB of memory, {cost.disk_mb:,.0f} MB "
        "of disk."
    )


def list_changes(changes: Mapping[str, Any]) -> Iterator[str]:
    """Yield which rows will be dropped and which cells changed, as counts by column."""
    if changes["dropped_rows"]:
        why = "; ".join(
            f"{words} {format_counts(changes[key])}" for key, words in DROPS.items() if changes[key]
        )
        yield (
            f"Rows that will be dropped: {changes['dropped_rows']:,} ({why}; a row may count for "
            "several columns)."
        )
    for key, words in CHANGES.items():
        counts = {name: count for name, count in changes[key].items() if count}
        if counts:
            yield f"{words}: {format_counts(counts)}."


def format_counts(counts: Mapping[str, int]) -> str:
    """Return columns with their counts."""
    return ", ".join(f"'{name}' {count:,}" for name, count in counts.items())


def list_charge_lines(charge: ChargeForecast) -> Iterator[str]:
    """Yield whether the ledger charges this attempt, how much, and what remains."""
    balance = charge.balance
    again = (
        "The same file and data again draw the same, and are not charged again."
        if balance.has_ids
        else "Without a record_id every run is a new draw of all records, and is charged again, "
        "also after a refusal."
    )
    if charge.is_refused:
        head = "the ledger will refuse this release, which is then not charged."
    elif charge.is_charged:
        records = format_count(balance.records, "record")
        head = f"this attempt charges {records}, whatever its verdict is. {again}"
    else:
        head = "this attempt charges nothing: it draws what earlier runs drew."
    yield " ".join([f"Ledger: {head}", *(finding.text for finding in charge.findings)])


def list_policy_lines(policy: PolicyForecast) -> Iterator[str]:
    """Yield whether the policy check of the self-test will refuse the release, and what helps."""
    if not policy.gaps:
        yield f"Policy: the self-test will accept it. {describe_policy_check(policy.check)}"
        return
    yield "Policy: the self-test will refuse this policy on this table, so no release passes."
    yield from (f"  {gap}" for gap in policy.gaps)
    if policy.remedy:
        yield f"  {policy.remedy}"
    if policy.remedy and not policy.is_exact:
        yield (
            "  The release is drawn with another key or on more records than this check: set such "
            "a limit with a margin."
        )


def build_charge(charge: ChargeForecast, context: ReleaseContext) -> ChargeBody:
    """Return the forecast of the ledger as `--json` prints it."""
    balance, limits = charge.balance, context.policy.limits
    product, draws = limits.get(LEDGER_RECORD), limits.get(LEDGER_DRAWS)
    ln_limit = None if product is None else math.log(product.value)
    return ChargeBody(
        is_charged=charge.is_charged,
        is_refused=charge.is_refused,
        is_charged_again=not balance.has_ids,
        records=balance.records,
        ln_spent=finite_or_none(balance.spent),
        ln_asked=finite_or_none(balance.asked),
        ln_after=finite_or_none(balance.after),
        ln_limit=ln_limit,
        ln_remaining=None
        if ln_limit is None or math.isinf(balance.after)
        else max(0.0, ln_limit - balance.after),
        draws_after=balance.draws_after,
        draws_limit=None if draws is None else draws.value,
        sentences=[finding.text for finding in charge.findings],
    )


def build_policy(policy: PolicyForecast) -> PolicyCheckBody:
    """Return the forecast of the policy check as `--json` prints it."""
    check = policy.check
    return PolicyCheckBody(
        is_refused=bool(policy.gaps),
        records=check.records if check else 0,
        bad_releases=[
            BadReleaseBody(
                name=each.name,
                refused_by=list(each.refused_by),
                observed=dict(each.observed),
                refusing_limits=dict(each.refusing_limits),
            )
            for each in (check.bad if check else ())
        ],
        noise_refused_by=list(check.noise.refused_by) if check else [],
        without_power=dict(check.powerless) if check else {},
        sentences=[*policy.gaps, *([policy.remedy] if policy.remedy else [])],
        seconds=policy.seconds,
        is_exact=policy.is_exact,
    )


def build_cost(cost: ReleaseCost) -> CostBody:
    """Return the estimate as `--json` prints it."""
    return CostBody(seconds=cost.seconds, memory_mb=cost.memory_mb, disk_mb=cost.disk_mb)


def finite_or_none(value: float) -> float | None:
    """Return the value, or None if there is no bound."""
    return value if math.isfinite(value) else None
