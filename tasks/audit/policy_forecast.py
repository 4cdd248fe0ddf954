"""Whether the self-test will find that the policy lets bad releases of this table pass."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ppdm_core.gates.self_test import POLICY_CHECK, explain_stricter, list_policy_gaps
from ppdm_core.model.release import Released
from ppdm_core.model.rows import Rows, load_rows, select_rows
from ppdm_core.model.self_test import PolicyCheck, SelfTestResult
from tasks.audit.attack_process import AttackProcess
from tasks.audit.leak_scan_check import ReleasePolicyQuestion
from tasks.audit.release_job import ReleaseJob
from tasks.audit.sample_job import make_sample_job
from tasks.context import ReleaseContext
from tasks.home_state import HomeState
from tasks.progress import Step, start_step
from tasks.sanitize.next_release import NextRelease
from warehouse.code_version import compute_code_version

MAX_RECORDS = 5_000  # the self-test attacks 500 of them; more give the same answer more slowly


@dataclass(frozen=True)
class PolicyForecast:
    """What the policy does with bad releases, and the sentences of the gate about it."""

    check: PolicyCheck | None
    gaps: tuple[str, ...]  # why the release will be refused; none if it will not
    remedy: str
    seconds: float
    is_exact: bool  # the release will find the same figures


def forecast_policy_check(
    context: ReleaseContext, release: NextRelease, state: HomeState
) -> PolicyForecast:
    """Run the policy check of the self-test on a draw that is not stored.

    Draw and seed are those of the next release if the dataset has a key and at most
    ``MAX_RECORDS`` records.
    """
    start_step(Step.POLICY_TEST)
    start = time.monotonic()
    version = compute_code_version()
    result = SelfTestResult(version, context.policy.digest)
    job, shadow = make_job(context, release, state, version)
    question = ReleasePolicyQuestion(shadow.atom, release.sanitizer.keeps_columns)
    with AttackProcess(job) as process:
        reply = process.ask(question, context.policy.time_limit)
    if reply.value is not None:
        result = replace(result, policy_check=reply.value)
    else:
        why = reply.error or (reply.skip.sentence if reply.skip else "")
        result = replace(result, failed={POLICY_CHECK: why})
    remedy = explain_stricter(result, release.sanitizer.advise())
    gaps = tuple(list_policy_gaps(result))
    is_exact = state.has_key and release.split.released.n <= MAX_RECORDS
    return PolicyForecast(result.policy_check, gaps, remedy, time.monotonic() - start, is_exact)


def make_job(
    context: ReleaseContext, release: NextRelease, state: HomeState, version: str
) -> tuple[ReleaseJob, Released]:
    """Return a job with one shadow draw, as the audit will draw it, and that draw."""
    policy = context.policy
    scope = release.data, policy.attack_settings_key, version
    draw = replace(policy, shadow_draws=1, splits=0)
    job = make_sample_job(context, release, sample_rows(release, state), state.noise, draw, scope)
    (shadow,) = job.shadows.shadows
    return replace(job, policy=policy), shadow


def sample_rows(release: NextRelease, state: HomeState) -> Rows:
    """Return the records that are released, or a random part of about ``MAX_RECORDS``."""
    rows = release.split.released
    if rows.n <= MAX_RECORDS:
        return rows
    share = MAX_RECORDS / rows.n

    blocks = (
        select_rows(block, state.noise.ranks(block.key, "check") < share * 2.0**64)
        for block in rows.blocks()
    )
    return load_rows(blocks, rows.schema, MAX_RECORDS)
