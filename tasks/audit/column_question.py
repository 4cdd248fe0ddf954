"""Ask the attack process which columns drive the risk; no limit judges the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ppdm_core.model.errors import NotApplicable
from tasks.audit.attack_inputs import make_job, read_inputs
from tasks.audit.attack_process import AttackProcess
from tasks.progress import Step, log_progress, start_step
from warehouse.stage_facts import ColumnFacts

if TYPE_CHECKING:
    from ppdm_core.audit.auditor import Auditor
    from ppdm_core.model.column_risks import ColumnRisks
    from tasks.context import ReleaseContext
    from warehouse.database import Run, Store

MAX_TIME_SHARE = 0.2  # of the time that the audit took
MAX_SECONDS = 86_400.0  # if the columns are asked for


@dataclass(frozen=True)
class ColumnQuestion:
    """The question to the attack process, which holds the table and the draws."""

    seconds: float | None = None  # that may be spent; None: as many as it takes

    def answer(self, auditor: Auditor) -> ColumnRisks:
        """Return which columns drive the risk, unless one run shows that this takes too long."""
        from ppdm_core.audit.column_risk import ColumnRuns

        start = time.monotonic()
        runs = ColumnRuns(auditor)
        prepared = time.monotonic()
        complete = runs.find_persons()
        once = time.monotonic() - prepared
        needed = prepared - start + once * (1 + len(runs.columns))
        if self.seconds is not None and needed > self.seconds:
            raise NotApplicable(
                f"It would take about {max(needed, 1.0):,.0f} s, more than {MAX_TIME_SHARE:.0%} of "
                "the audit's time."
            )
        return runs.compare(complete, runs.columns)


def ask_columns(process: AttackProcess, seconds: float) -> ColumnFacts:
    """Return which columns drive the risk, or why that was not measured."""
    policy = process.job.policy
    if policy.effort == "quick":
        return ColumnFacts(None, "The effort of the audit is quick.")
    return read_reply(process, ColumnQuestion(seconds), policy.time_limit)


def read_reply(process: AttackProcess, question: ColumnQuestion, limit: float) -> ColumnFacts:
    """Return the reply of the attack process as facts."""
    log_progress("which columns drive the risk")
    reply = process.ask(question, limit)
    if reply.skip is not None:
        return ColumnFacts(None, reply.skip.sentence)
    return ColumnFacts(reply.value, f"It failed ({reply.error})." if reply.error else "")


def measure_stored_release(store: Store, context: ReleaseContext, run: Run) -> ColumnFacts:
    """Return which columns drive the risk of a release whose records are still stored.

    The draws are those of its audit: their keys follow from the same records, settings and code.
    """
    name = f"{run.release_id}-columns"
    start_step(Step.DRAW)
    try:
        with store.transaction(name) as db:
            inputs = read_inputs(db, context, run, store.home.work(name))
        job = make_job(context, run, inputs)
        start_step(Step.ATTACK)
        with AttackProcess(job) as process:
            return read_reply(process, ColumnQuestion(), MAX_SECONDS)
    finally:
        store.home.clear_work(name)
