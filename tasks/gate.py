"""Turns the audit's report into a verdict and stores it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.gates import Evidence, decide
from ppdm_core.verdict import Finding, Outcome, worst
from tasks.facts import guarantee_from_dict, report_from_dict
from tasks.plan import Plan, say
from tasks.shield import shielded
from warehouse.stages import is_past
from warehouse.store import Run, now, read_fact

if TYPE_CHECKING:
    import duckdb


EARLIER = "earlier_refusals"


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
        refusals = earlier_refusals(db, run, plan)
    assert report is not None and facts is not None
    evidence = Evidence(
        report=report_from_dict(report),
        guarantee=guarantee_from_dict(facts["guarantee"]),
        method=plan.method,
        policy=plan.policy,
        has_numbers=bool(facts["public"]["columns"]),
    )
    verdict = decide(evidence, data_digest=facts["data_digest"], code_version=run.code_version)
    findings = verdict.findings + refusals
    verdict = replace(verdict, findings=findings, outcome=worst(findings))
    stage = "approved" if verdict.outcome == "PASS" else "refused"
    with store.advance(run, stage, failures=len(verdict.failures)) as change:
        change.db.execute(
            "insert into audit.verdict values (?, ?, ?, ?, ?, ?, ?)",
            [
                release_id,
                verdict.outcome,
                verdict.data_digest,
                verdict.policy_digest,
                verdict.code_version,
                json.dumps([asdict(finding) for finding in findings]),
                now(),
            ],
        )


def earlier_refusals(db: duckdb.DuckDBPyConnection, run: Run, plan: Plan) -> tuple[Finding, ...]:
    """Nobody tunes settings until they pass: a pass by the same method after a refusal of the
    same data needs somebody's name. A refusal of another method is told, not judged."""
    rows = db.execute(
        "select release_id, json_extract_string(f.value, '$.method') from meta.run r "
        "join meta.fact f using (release_id) where f.kind = 'sanitized' and r.dataset = ? "
        "and source_digest = ? and file_digest <> ? and stage = 'refused' order by number",
        [run.dataset, run.source_digest, run.file_digest],
    ).fetchall()
    if not rows:
        return ()
    names = ", ".join(name for name, _ in rows)
    why = f"With other settings the same data were refused before ({names})."
    is_tuned = any(method == plan.method for _, method in rows)
    if is_tuned and plan.policy.retry_waiver:
        why += f" Allowed by: {plan.policy.retry_waiver}."
    elif is_tuned:
        why += ' Somebody must stand for it by name: retry_waiver = "who and why" in [audit].'
    outcome: Outcome = "FAIL" if is_tuned and not plan.policy.retry_waiver else "PASS"
    return (Finding(EARLIER, outcome, why, observed=f"{len(rows)} refused"),)
