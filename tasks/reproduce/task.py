"""The steps of a reproduction: measure, judge the claims, and log what was found."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.progress import Step, log_progress, start_step
from tasks.redaction import redact_errors
from tasks.reproduce.mlflow_runs import log_claim_runs
from tasks.reproduce.plan import Plan, Reproduction, judge_claims
from tasks.reproduce.run_time import RunTime, read_run_time, update_run_time, write_run_time
from warehouse.clock import now

if TYPE_CHECKING:
    from studies.reproduction.measurement import Measurement


@task(name="measure", task_run_name="{title}", cache_policy=NO_CACHE)
@redact_errors
def measure_job(title: str, job: Measurement, path: Path, workers: ProcessPoolExecutor) -> float:
    """Run one experiment on one table in another process; its result is a file."""
    from studies.reproduction.results import measure_into

    return workers.submit(measure_into, job, str(path)).result()


@task(name="judge claims", cache_policy=NO_CACHE)
@redact_errors
def write_pages(plan: Plan, run: RunTime, *, check: bool) -> Reproduction:
    """Judge all claims, and write the pages and pictures."""
    from studies.reproduction import results
    from studies.reproduction.page import write_reproduction
    from studies.reproduction.sampling import COMMITTED, COMMITTED_TIME, find_changed

    known = results.find_known(plan.folder, plan.jobs)
    findings = judge_claims(plan, known)
    is_committed = plan.is_whole and not plan.is_full
    time = keep_run_time(plan, run)
    if is_committed:
        time = time or read_run_time(COMMITTED_TIME)
    found = Reproduction(
        findings=findings,
        results=known,
        page=plan.out / "reproduction.md",
        measured=run.measured,
        kept=len(plan.jobs) - run.measured,
        seconds=run.seconds,
        time=time,
        changed=find_changed(findings) if check else (),
    )
    results.write_findings(plan.folder / "findings.parquet", findings)
    if is_committed:
        results.write_findings(COMMITTED, findings)
        results.write_results(results.COMMITTED, known)
        if time is not None:
            write_run_time(COMMITTED_TIME, time)
    write_reproduction(plan, found)
    return found


def keep_run_time(plan: Plan, run: RunTime) -> RunTime | None:
    """Return the time of a whole run with that of the runs that it continues, and keep it."""
    if not plan.is_whole:
        return run if run.measured == len(plan.jobs) else None
    name = "run_time_full.json" if plan.is_full else "run_time.json"
    return update_run_time(plan.folder.parent / name, run, len(plan.jobs))


@task(name="log claims", cache_policy=NO_CACHE)
@redact_errors
def log_claims(home: Path, found: Reproduction) -> None:
    """Log one nested run for each claim to MLflow; nothing depends on it."""
    start_step(Step.LOG)
    if not log_claim_runs(home, found, now()):
        log_progress("MLflow could not be reached; the verdicts do not depend on it")
