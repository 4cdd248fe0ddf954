"""Turns the audit's report into a verdict and stores it."""

from __future__ import annotations

import json
from dataclasses import asdict

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.gates import Evidence, decide
from tasks.facts import guarantee_from_dict, report_from_dict
from tasks.plan import Plan, say
from tasks.shield import shielded
from warehouse.stages import is_past
from warehouse.store import now, read_fact


@task(name="judge", cache_policy=NO_CACHE)
@shielded
def judge(plan: Plan, release_id: str) -> None:
    say("judging")
    store, run = plan.run(release_id)
    if is_past(run.stage, "approved"):
        return
    with store.transaction(release_id) as db:
        report = read_fact(db, release_id, "report")
        facts = read_fact(db, release_id, "sanitized")
    assert report is not None and facts is not None
    evidence = Evidence(
        report=report_from_dict(report),
        guarantee=guarantee_from_dict(facts["guarantee"]),
        method=plan.method,
        policy=plan.policy,
    )
    verdict = decide(evidence, data_digest=facts["data_digest"], code_version=run.code_version)
    stage = "approved" if verdict.outcome == "PASS" else "refused"
    with store.advance(run, stage, failures=len(verdict.failures)) as change:
        findings = json.dumps([asdict(finding) for finding in verdict.findings])
        change.db.execute(
            "insert into audit.verdict values (?, ?, ?, ?, ?, ?, ?)",
            [
                release_id,
                verdict.outcome,
                verdict.data_digest,
                verdict.policy_digest,
                verdict.code_version,
                findings,
                now(),
            ],
        )
