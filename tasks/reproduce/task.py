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
def write_pages(plan: Plan, measured: int, seconds: float, *, check: bool) -> Reproduction:
    """Judge all claims, and write the pages and pictures."""
    from studies.reproduction import results
    from studies.reproduction.page import write_reproduction
    from studies.reproduction.sampling import COMMITTED, find_changed

    known = results.find_known(plan.folder, plan.jobs)
    findings = judge_claims(plan, known)
    found = Reproduction(
        findings=findings,
        results=known,
        page=plan.out / "reproduction.md",
        measured=measured,
        kept=len(plan.jobs) - measured,
        seconds=seconds,
        changed=find_changed(findings) if check else (),
    )
    results.write_findings(plan.folder / "findings.parquet", findings)
    if plan.is_whole and not plan.is_full:
        results.write_findings(COMMITTED, findings)
        results.write_results(results.COMMITTED, known)
    write_reproduction(plan, found)
    return found


@task(name="log claims", cache_policy=NO_CACHE)
@redact_errors
def log_claims(home: Path, found: Reproduction) -> None:
    """Log one nested run for each claim to MLflow; nothing depends on it."""
    start_step(Step.LOG)
    if not log_claim_runs(home, found, now()):
        log_progress("MLflow could not be reached; the verdicts do not depend on it")
