"""Run attacks in a child process, which is killed at its time limit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeAlias

from ppdm_core.audit.runner import Attempt, AuditResult, run_audit
from ppdm_core.model.score import AuditReport
from tasks.audit.attack_worker import AttackJob, Question, receive, send
from tasks.audit.cost_estimate import estimate_cost, limit_time, weigh_audit
from tasks.progress import Step, log_progress, start_step
from warehouse.checkpoints import checkpoint

Process: TypeAlias = "subprocess.Popen[bytes]"
SPARE_PROCESSES: list[Process] = []  # started, without a job
# Attacks multiply narrow tables: several threads wait for each other and are slower than one.
SINGLE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def run_attacks(
    job: AttackJob,
    names: Sequence[str],
    on_share: Callable[[float], None],
    process: AttackProcess | None = None,
    answers: Iterator[AuditResult] | None = None,
) -> AuditReport:
    """Run audits in a child process, each under the time limit of the policy.

    ``answers``: the results in the order of the names, if workers run the audits.
    """
    count = len(names)
    start_step(Step.ATTACK)
    cost = estimate_cost(job.shape, job.draws, names, job.policy)
    log_progress(cost.sentence, 0.0, cost.seconds)
    costs = list(map(weigh_audit, names))

    def log_start(done: int, name: str) -> None:
        share = sum(costs[:done]) / sum(costs)
        on_share(share)
        log_progress(f"attack {done + 1} of {count}: {name.replace('_', ' ')}", share)

    with nullcontext(process) if process else AttackProcess(job) as asked:

        def run_one(name: str) -> AuditResult:
            if answers is not None:
                return next(answers)
            return asked.ask(name, limit_time(name, job.shape, job.policy))

        report = run_audit(run_one, names, log_start)
    on_share(1.0)
    return report


@contextmanager
def start_spare_process() -> Iterator[None]:
    """Start a process early, so that its imports are done when the audit needs it."""
    process = spawn()
    SPARE_PROCESSES.append(process)
    try:
        yield
    finally:
        if process in SPARE_PROCESSES:
            SPARE_PROCESSES.remove(process)
            end(process)


def take_process() -> Process:
    """Return the spare process if there is one, else a new one."""
    with suppress(IndexError):
        process = SPARE_PROCESSES.pop()
        if process.poll() is None:
            return process
        end(process)
    return spawn()


def spawn() -> Process:
    """Start an attack process."""
    return subprocess.Popen(
        [sys.executable, "-m", "tasks.audit.attack_worker", str(os.getpid())],
        cwd=Path(__file__).resolve().parents[2],  # not where a user's modules are
        env={**os.environ, **SINGLE_THREAD},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a traceback may quote a value
    )


def end(process: Process) -> None:
    """Kill a process and collect it."""
    process.kill()
    process.communicate()


class AttackProcess:
    """The attack process; after a hang or a crash the next message starts a new one."""

    def __init__(self, job: AttackJob) -> None:
        self.job = job
        self.process: Process | None = None

    def __enter__(self) -> AttackProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> tuple[Process, bool]:
        """Return the process, and whether it is new and needs the job."""
        if self.process is not None:
            return self.process, False
        self.process = take_process()
        return self.process, True

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)
            self.process = None

    def kill(self) -> None:
        """Kill the process; a thread that waits for its reply collects it."""
        process = self.process
        if process is not None:
            process.kill()

    def ask(self, message: str | Question, limit: float) -> Attempt[Any]:
        """Return the reply to an audit's name or to a question of the self-test.

        The process is killed at the time limit.
        """
        process, is_new = self.start()
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            for each in (self.job, message) if is_new else (message,):
                send(process.stdin, each)  # type: ignore[arg-type]
            checkpoint("attack asked")
            reply: Attempt[Any] = receive(process.stdout)  # type: ignore[arg-type]
        except (EOFError, BrokenPipeError):
            in_time = timer.is_alive()
            self.stop()
            return Attempt(error="WorkerDied" if in_time else "TimeLimit")
        finally:
            timer.cancel()
        return reply
