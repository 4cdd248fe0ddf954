"""Whole attacks on the workers of an engine, each in a child process of its worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ppdm_core.audit.runner import AuditResult
from tasks.audit.attack_process import AttackProcess
from tasks.audit.attack_worker import AttackJob
from tasks.audit.cost_estimate import limit_time
from warehouse.engines import Engine

PROCESSES: dict[int, AttackProcess] = {}  # of this worker, by thread


@dataclass(frozen=True, eq=False)
class AttackStep:
    """Runs an audit by name in a child process, which is killed at the time limit.

    The process of a worker stays for the next audit of the same job: it holds the table.
    """

    job: AttackJob

    def __call__(self, part: tuple[str, float]) -> AuditResult:
        name, limit = part
        thread = threading.get_ident()
        process = PROCESSES.get(thread)
        if process is None or process.job.seed != self.job.seed:
            if process is not None:
                process.stop()
            process = PROCESSES[thread] = AttackProcess(self.job)
        result: AuditResult = process.ask(name, limit)
        return result


def end_processes(part: None = None) -> None:
    """End the child processes of this worker."""
    while PROCESSES:
        PROCESSES.popitem()[1].stop()


def run_on_workers(job: AttackJob, names: Sequence[str], engine: Engine) -> Iterator[AuditResult]:
    """Yield the results of audits in their order; workers run several at once."""
    limits = [(name, limit_time(name, job.shape, job.policy)) for name in names]
    try:
        yield from engine.run(AttackStep(job), limits)
    finally:
        engine.run_everywhere(end_processes)
