"""Turns the audit's report into a verdict and stores it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.gates import Evidence, decide
from ppdm_core.model.ledger import Account
from ppdm_core.model.verdict import Finding, Outcome, Verdict, worst
from tasks.context import Plan
from tasks.judge.ledger_charge import charge, weigh
from tasks.progress import log_progress
from tasks.redaction import shielded
from tasks.stage_facts import guarantee_from_dict, report_from_dict
from warehouse.approvals import WAITERS
from warehouse.database import Run, read_fact
from warehouse.integrity.history import check_history
from warehouse.integrity.seals import moment
from warehouse.stages import Stage, is_past

if TYPE_CHECKING:
    import duckdb


EARLIER = "earlier_refusals"
STAGES: dict[Outcome, Stage] = {
    "PASS": Stage.APPROVED,
    "REVIEW": Stage.AWAITING_REVIEW,
    "FAIL": Stage.REFUSED,
}


@task(name="judge", cache_policy=NO_CACHE)
@shielded
def judge(plan: Plan, release_id: str, dry_run: bool = False) -> None:
    log_progress("judging")
    store, run = plan.run(release_id)
    if is_past(run.stage, Stage.AWAITING_REVIEW):
        return
    # One transaction reads the ledger, decides and charges: two runs cannot spend the same.
    with store.advance(run, STAGES["FAIL"]) as change:
        check_history(change.db)  # what it judges by is what was written
        account = weigh(change, run, plan)
        verdict = reached(change.db, run, plan, account)
        change.to = STAGES[verdict.outcome]
        if dry_run and change.to == Stage.AWAITING_REVIEW:  # there is nothing to decide about
            change.to = Stage.DRY_RUN_PASSED
        change.detail["failures"] = len(verdict.failures)
        change.keep(
            "audit.verdict",
            {
                "release_id": release_id,
                "outcome": verdict.outcome,
                "data_digest": verdict.data_digest,
                "policy_digest": verdict.policy_digest,
                "code_version": verdict.code_version,
                "findings": json.dumps([asdict(finding) for finding in verdict.findings]),
                "happened": moment(change.db),
            },
        )
        charge(change, run, plan, account, verdict)
        if change.to == Stage.AWAITING_REVIEW:
            change.keep(WAITERS, {"release_id": release_id, "file": plan.file})


def reached(
    db: duckdb.DuckDBPyConnection, run: Run, plan: Plan, account: Account | None
) -> Verdict:
    report = read_fact(db, run.release_id, "report")
    facts = read_fact(db, run.release_id, "sanitized")
    assert report is not None and facts is not None
    evidence = Evidence(
        report=report_from_dict(report),
        guarantee=guarantee_from_dict(facts["guarantee"]),
        method=plan.method,
        policy=plan.policy,
        has_numbers=bool(facts["public"]["columns"]),
        account=account,
    )
    verdict = decide(evidence, data_digest=facts["data_digest"], code_version=run.code_version)
    findings = verdict.findings + earlier_refusals(db, run)
    return replace(verdict, findings=findings, outcome=worst(findings))


TRIED_BEFORE = """
    with audited as (
        select release_id, max(json_extract_string(detail, '$.data')) as data
        from meta.event
        where dataset = $dataset
        group by release_id
        having bool_or(kind = $audited)
    )
    select
        release_id,
        d.release_id is not null and file_digest = $file and r.code_version = $code as is_rejected
    from meta.run r
    join audited a using (release_id)
    left join audit.verdict v using (release_id)
    left join (from audit.decision where choice = 'reject') d using (release_id)
    where release_id <> $release and (a.data = $data or source_digest = $source) and (
        d.release_id is not null
        or (file_digest <> $file or r.code_version <> $code) and (
            stage = $refused
            or coalesce(v.outcome, '') <> 'PASS' and not list_contains($released, stage)
        )
    )
    order by number
"""


def earlier_refusals(db: duckdb.DuckDBPyConnection, run: Run) -> tuple[Finding, ...]:
    """Nobody tunes settings until they pass, or asks until somebody approves: once the same data
    were audited with other settings and did not pass, people decide, whichever method it was; and
    what somebody rejected stays rejected."""
    valid = read_fact(db, run.release_id, "validated")
    assert valid is not None
    values = {
        "dataset": run.dataset,
        "release": run.release_id,
        "data": valid["data"],
        "source": run.source_digest,
        "file": run.file_digest,
        "code": run.code_version,
        "audited": Stage.AUDITED,
        "refused": Stage.REFUSED,
        "released": [Stage.PUBLISHED, Stage.NO_CHANGE],
    }
    rows = db.execute(TRIED_BEFORE, values).fetchall()
    rejected = [name for name, is_rejected in rows if is_rejected]
    if rejected:
        why = f"Somebody rejected the same release of the same data ({', '.join(rejected)})."
        return (Finding(EARLIER, "FAIL", why, observed=f"{len(rejected)} rejected"),)
    if not rows:
        return ()
    names = ", ".join(name for name, _ in rows)
    why = f"With other settings or code the same data did not pass before ({names}). People decide."
    return (Finding(EARLIER, "REVIEW", why, observed=f"{len(rows)} did not pass"),)
