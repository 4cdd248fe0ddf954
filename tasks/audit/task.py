"""Attacks the shadow draws and records what they got."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.audit.runner import audit_names
from tasks.audit.attack_inputs import export
from tasks.audit.attack_process import Worker, play
from tasks.audit.self_test import SelfTesting
from tasks.context import Plan
from tasks.notify.prefect_artifacts import Bar
from tasks.redaction import shielded
from tasks.stage_facts import report_to_dict
from warehouse.checkpoints import checkpoint
from warehouse.database import keep_fact
from warehouse.stages import Stage, is_past


@task(name="attack shadows", cache_policy=NO_CACHE)
@shielded
def attack_shadows(plan: Plan, release_id: str) -> None:
    store, run = plan.run(release_id)
    if is_past(run.stage, Stage.AUDITED):
        return
    testing = SelfTesting(store, run, plan.policy)
    job = export(plan, store, run)
    with Worker(job) as worker:
        testing.prove(worker)
        report = play(job, audit_names(plan.policy), Bar(plan.dataset).show, worker)
        report = testing.cover(worker, job, report)
    store.home.clear_work(release_id)
    checkpoint("attacks played")
    with store.advance(run, Stage.AUDITED) as change:
        keep_fact(change.db, run, "report", report_to_dict(report))
        rows = [
            [run.release_id, s.name, s.value, s.low, s.high, s.n, s.baseline, s.worst]
            for s in report.scores
        ]
        if rows:
            change.db.executemany("insert into audit.score values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        testing.keep(change)
        change.detail.update(scores=len(rows), failed=len(report.failed))
