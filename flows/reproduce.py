"""The flow that measures the claims of five papers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.futures import as_completed
from prefect.states import Completed
from prefect.task_runners import ThreadPoolTaskRunner

from ppdm_core.model.errors import Defect
from tasks.defect_report import write_defect_report
from tasks.environment import set_library_defaults
from tasks.progress import Step, log_progress, start_step
from tasks.reproduce.plan import keep_measured, make_plan
from tasks.reproduce.run_time import RunTime
from tasks.reproduce.task import log_claims, measure_job, write_pages
from tasks.reproduce.workers import count_processes, start_workers

MAX_PROCESSES = 32
RUNNER: Any = ThreadPoolTaskRunner(max_workers=MAX_PROCESSES)


@flow(
    name="reproduce",
    retries=0,
    task_runner=RUNNER,
)
def reproduce(
    home: Path,
    paper: str | None = None,
    claim: str | None = None,
    full: bool = False,
    check: bool = False,
    measured: bool = False,
    processes: int | None = None,
) -> State[Any]:
    """Measure claims of papers, judge each by its rule, and write a page about them.

    Results are kept by experiment, parameters and code, so that a run that was killed goes on.

    Args:
        home: Folder for results; no table of a steward is read.
        paper: P0 to P4; by default all.
        claim: One claim, such as P0.C7.
        full: More draws on large tables, and generated tables of full size.
        check: Measure a random tenth of the claims again, and compare with the committed verdicts.
        measured: Judge only claims that are measured already, and measure nothing.
        processes: Processes at once; by default one for each core.
    """
    try:
        set_library_defaults(home)
        plan = make_plan(home, paper, claim, full=full, check=check)
        if measured:
            plan = keep_measured(plan)
        from studies.reproduction.results import find_result

        start_step(Step.REPRODUCE)
        start = time.monotonic()
        paths = {job: find_result(plan.folder, job) for job in plan.jobs}
        todo = [job for job in plan.jobs if check or not paths[job].exists()]
        todo = [] if measured else todo
        count = processes or count_processes()
        with start_workers(count) as workers:
            pending = {measure_job.submit(job.title, job, paths[job], workers): job for job in todo}
            for done, future in enumerate(as_completed(list(pending)), start=1):
                future.result()
                title = pending[future].title
                log_progress(f"{done} of {len(todo)} measured: {title}", done / len(todo))
        run = RunTime(time.monotonic() - start, count, len(todo))
        found = write_pages(plan, run, check=check)
        log_claims(home, found)
    except Defect as error:
        raise write_defect_report(home, error) from None
    return Completed(message=f"{len(found.findings)} claims were judged.", data=found)
