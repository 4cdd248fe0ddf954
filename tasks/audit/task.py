"""The step that attacks the shadow draws and stores what the attacks measured."""

from __future__ import annotations

import time

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.audit.runner import choose_audits
from tasks.audit.attack_inputs import make_job, read_inputs
from tasks.audit.attack_process import AttackProcess, run_attacks
from tasks.audit.attack_step import run_on_workers
from tasks.audit.column_question import MAX_TIME_SHARE, ask_columns
from tasks.audit.leak_scan_check import ReleasePolicyQuestion
from tasks.audit.self_test import SelfTestRun
from tasks.context import ReleaseContext
from tasks.engine import open_engine, open_work
from tasks.ingest.task import reject_bad_input
from tasks.notify.prefect_artifacts import ProgressBar
from tasks.progress import Step, start_step
from tasks.redaction import redact_errors
from warehouse.audit_results import store_scores
from warehouse.checkpoints import checkpoint
from warehouse.stage_facts import AuditedFacts, store_facts
from warehouse.stages import Stage, is_past


@task(name="attack shadows", cache_policy=NO_CACHE)
@redact_errors
def attack_shadows(context: ReleaseContext, release_id: str) -> None:
    """Draw releases as the candidate was drawn, and attack them in a child process.

    The self-test of the audit runs in the same process.
    """
    start_step(Step.DRAW)
    start = time.monotonic()
    store = context.open_store()
    with context.open_run(release_id) as (db, run):
        if is_past(run.stage, Stage.AUDITED):
            return
        self_test = SelfTestRun(db, run, context.policy)
    with (
        open_engine(context) as engine,
        open_work(context, release_id, engine) as work,
    ):
        with reject_bad_input(context, release_id):
            with context.open_run(release_id) as (db, run):
                inputs = read_inputs(db, context, run, work, engine)
            job = make_job(context, run, inputs)
        checkpoint("shadows drawn")
        show_share = ProgressBar(context.dataset).show
        facts = inputs.sanitized
        question = ReleasePolicyQuestion(facts.atom, facts.same_columns)
        names = choose_audits(context.policy)
        with AttackProcess(job) as process, run_on_workers(job, names, engine) as answers:
            self_test.check_attacks(process)
            report = run_attacks(job, names, show_share, process, answers)
            report = self_test.check_policy(process, question, report)
            columns = ask_columns(process, MAX_TIME_SHARE * (time.monotonic() - start))
    checkpoint("attacks run")
    with store.advance(run, Stage.AUDITED) as change:
        store_facts(change.db, run, AuditedFacts(report))
        store_facts(change.db, run, columns)
        store_scores(change.db, run.release_id, report.scores)
        self_test.store_tests(change)
        change.detail.update(scores=len(report.scores), failed=len(report.failed))
