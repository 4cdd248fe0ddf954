"""Plays attacks in a child process, which is killed when its time is up."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeAlias

from ppdm_core.audit.runner import every_audit
from ppdm_core.model.score import AuditReport, Score
from tasks.audit.attack_worker import Job, receive, send
from tasks.audit.cost_estimate import foretell
from tasks.progress import log_progress
from warehouse.checkpoints import checkpoint

Process: TypeAlias = "subprocess.Popen[bytes]"
SPARE: list[Process] = []  # started, without a job
# Attacks multiply thin tables: threads that wait for each other take longer than one, and three
# times as long on a busy machine.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def play(
    job: Job,
    names: Sequence[str],
    progress: Callable[[float], None],
    worker: Worker | None = None,
) -> AuditReport:
    scores: list[Score] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    log_progress(foretell(job.shape(), job.shadows + job.halves, names, job.policy))
    with nullcontext(worker) if worker else Worker(job) as worker:
        for number, name in enumerate(names, start=1):
            share = (number - 1) / len(names)
            log_progress(f"attacking {number}/{len(names)}: {name.replace('_', ' ')}", share)
            kind, answer = worker.ask(name, job.policy.time_limit)
            progress(number / len(names))
            if kind == "scores" and answer and all(map(is_finite, answer)):
                scores.extend(answer)
            elif kind == "scores":
                failed[name] = "NotANumber" if answer else "NoScore"
            elif kind == "skipped":
                skipped[name] = answer
            else:
                failed[name] = answer
    not_run = tuple(name for name in every_audit() if name not in names)
    return AuditReport(tuple(scores), skipped, failed, not_run)


def is_finite(score: Score) -> bool:
    figures = (score.value, score.low, score.high, score.baseline, score.worst)
    return all(map(math.isfinite, figures))


@contextmanager
def spare_worker() -> Iterator[None]:
    """A process that has its imports behind it when the audit asks for one."""
    process = spawn()
    SPARE.append(process)
    try:
        yield
    finally:
        if process in SPARE:
            SPARE.remove(process)
            end(process)


def take() -> Process:
    """The spare process if there is one, else a new one."""
    with suppress(IndexError):
        process = SPARE.pop()
        if process.poll() is None:
            return process
        end(process)
    return spawn()


def spawn() -> Process:
    return subprocess.Popen(
        [sys.executable, "-m", "tasks.audit.attack_worker", str(os.getpid())],
        cwd=Path(__file__).resolve().parents[2],  # not where a user's modules are
        env={**os.environ, **ONE_THREAD},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a traceback may quote a value
    )


def end(process: Process) -> None:
    process.kill()
    process.communicate()


class Worker:
    """The attacking process; after a hang or a crash the next question starts a new one."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.process: Process | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> tuple[Process, bool]:
        """The process, and whether it is new and must be told the job."""
        if self.process is not None:
            return self.process, False
        self.process = take()
        return self.process, True

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)
            self.process = None

    def ask(self, name: object, limit: float) -> tuple[str, Any]:
        """The answer to an audit's name or to a question of the self-test.

        Whatever it waits for, the process is killed when the time is up.
        """
        process, is_new = self.start()
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            for message in (self.job, name) if is_new else (name,):
                send(process.stdin, message)  # type: ignore[arg-type]
            checkpoint("attack asked")
            answer: tuple[str, Any] = receive(process.stdout)  # type: ignore[arg-type]
        except (EOFError, BrokenPipeError):
            in_time = timer.is_alive()
            self.stop()
            return "failed", "WorkerDied" if in_time else "TimeLimit"
        finally:
            timer.cancel()
        return answer
