"""What keeps a release from passing although its settings keep every limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ppdm_core.audit.certifiable import compute_smallest_limits
from tasks.audit.policy_forecast import forecast_policy_check
from tasks.judge.charge_forecast import forecast_charge
from tasks.sanitize.next_release import fit_release
from tasks.tune.plan import TunePlan
from tasks.tune.result import TuneResult
from warehouse.audit_results import find_verdict
from warehouse.database import list_runs
from warehouse.stages import Stage
from warehouse.transaction import Transaction


def find_obstacles(plan: TunePlan, result: TuneResult) -> tuple[str, ...]:
    """Return why a release with the proposed setting would not pass, one sentence each."""
    return tuple(list_obstacles(plan, result))


def list_obstacles(plan: TunePlan, result: TuneResult) -> Iterator[str]:
    """Yield earlier refusals, gaps of the policy, and what the ledger refuses."""
    choice = result.choice
    with plan.context.open_store().transaction(f"{plan.context.dataset} tune") as db:
        refused = find_last_refusal(db, plan.context.dataset)
    if refused:
        yield (
            f"{refused} did not pass: a reviewer decides about the next release of the same "
            "data, whatever its settings are. A tune does not change that."
        )
    yield from list_uncertifiable(plan)
    if choice is None:
        return
    setting = choice.setting
    context = replace(plan.context, method=setting.method, parameters=dict(setting.parameters))
    release = fit_release(context, plan.records, plan.state)
    policy = forecast_policy_check(context, release, plan.state)
    if policy.gaps:
        yield f"The self-test will refuse the policy. {' '.join(policy.gaps)} {policy.remedy}"
    charge = forecast_charge(context, release, plan.state)
    if charge.is_refused:
        failed = next(each for each in charge.findings if each.outcome == "FAIL")
        yield f"The ledger will refuse the release. {failed.text}"


def list_uncertifiable(plan: TunePlan) -> Iterator[str]:
    """Yield the limits that so few records cannot certify after so many settings were tried."""
    policy = plan.rounds[-1].policy  # as the release after this tune is judged
    before = compute_smallest_limits(plan.context.policy, plan.total)
    for name, value in compute_smallest_limits(policy, plan.total).items():
        limit = plan.context.policy.limits[name].value
        if limit >= value:
            continue
        why = "even if the attack gets nothing"
        if before[name] <= limit:
            share = f"{100 * before[name]:.2g} % before"
            why += f", once {len(plan.settings)} settings were tried ({share})"
        yield (
            f"{name}: {plan.total:,} records certify {100 * value:.2g} % at best, {why}, so a "
            "reviewer decides about every release."
        )


def find_last_refusal(db: Transaction, dataset: str) -> str:
    """Return the last release of a dataset if it did not pass and was not published, else ""."""
    for run in reversed(list_runs(db, dataset)):
        verdict = find_verdict(db, run.release_id)
        if verdict is not None:
            is_passed = run.stage == Stage.PUBLISHED or verdict.outcome == "PASS"
            return "" if is_passed else run.release_id
    return ""
