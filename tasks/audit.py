"""Attacks the shadow draws in a child process and records what they got."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.audit import audit_names
from ppdm_core.scaling import Scaling
from ppdm_core.types import AuditReport, Floats, Ints, Public, Score
from tasks.audit_worker import Job, receive, send
from tasks.cards import Bar
from tasks.facts import public_from_dict, report_to_dict, schema_from_dict
from tasks.ingest import validated_table
from tasks.keys import dataset_noise
from tasks.plan import Plan, say
from tasks.sanitize import kept_table, shadow_table
from tasks.shield import shielded
from warehouse.checkpoints import checkpoint
from warehouse.door import ORDER
from warehouse.sql import ROW, quoted
from warehouse.stages import is_past
from warehouse.store import Run, Store, keep_fact, read_fact

Process: TypeAlias = "subprocess.Popen[bytes]"
SPARE: list[Process] = []  # started, without a job


@task(name="attack shadows", cache_policy=NO_CACHE)
@shielded
def attack_shadows(plan: Plan, release_id: str) -> None:
    store, run = plan.run(release_id)
    if is_past(run.stage, "audited"):
        return
    report = play(export(plan, store, run), Bar(plan.dataset).show)
    store.home.clear_work(release_id)
    checkpoint("attacks played")
    with store.advance(run, "audited") as change:
        keep_fact(change.db, run, "report", report_to_dict(report))
        rows = [
            [run.release_id, s.name, s.value, s.low, s.high, s.n, s.baseline, s.worst]
            for s in report.scores
        ]
        if rows:
            change.db.executemany("insert into audit.score values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        change.detail.update(scores=len(rows), failed=len(report.failed))


def export(plan: Plan, store: Store, run: Run) -> Job:
    """The truth and the shadow draws as arrays in the private work folder."""
    folder = store.home.work(run.release_id)
    store.home.clear_work(run.release_id)
    folder.mkdir(parents=True)
    with store.transaction(run.release_id) as db:
        facts = read_fact(db, run.release_id, "sanitized")
        valid = read_fact(db, run.release_id, "validated")
        assert facts is not None and valid is not None
        schema = schema_from_dict(valid["schema"])
        public = public_from_dict(facts["public"])
        table = f"{validated_table(run)} where {ROW} in (from {kept_table(run)})"
        records, X = numbered(db, schema.names, table)
        _, label = numbered(db, ("__ppdm_label",), table)
        scaling = Scaling.from_dict(facts["scaling"])
        np.save(folder / "X.npy", (X - scaling.offset) / scaling.unit)
        np.save(folder / "label.npy", label[:, 0].astype(np.int32))
        for k in range(plan.policy.shadow_draws):
            rows, Y = numbered(db, public.columns, shadow_table(run, k), f"{ROW}, {ORDER}")
            np.save(folder / f"Y{k}.npy", Y)
            if not facts["row_aligned"]:
                np.save(folder / f"source{k}.npy", np.searchsorted(records, rows))
    noise = dataset_noise(store, plan.dataset)
    seed = noise.subkey("audit", run.source_digest, plan.policy.play, run.code_version)
    publics: tuple[Public, ...] = (public,) * plan.policy.shadow_draws
    return Job(str(folder), publics, scaling.schema(schema), plan.policy, seed)


def numbered(db: Any, names: tuple[str, ...], table: str, order: str = ROW) -> tuple[Ints, Floats]:
    """Places in the source, and the named columns beside them, (n, len(names))."""
    query = f"select {', '.join(map(quoted, (ROW, *names)))} from {table} order by {order}"
    columns = db.execute(query).fetchnumpy()
    found = np.empty((len(columns[ROW]), len(names)))
    for i, name in enumerate(names):
        found[:, i] = columns[name]
    return columns[ROW], found


def play(job: Job, progress: Callable[[float], None]) -> AuditReport:
    scores: list[Score] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    names = audit_names()
    with Worker(job) as worker:
        for number, name in enumerate(names, start=1):
            say(f"attacking {number}/{len(names)}: {name.replace('_', ' ')}")
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
    return AuditReport(tuple(scores), skipped, failed)


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
        [sys.executable, "-m", "tasks.audit_worker", str(os.getpid())],
        cwd=Path(__file__).resolve().parents[1],  # not where a user's modules are
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

    def ask(self, name: str, limit: float) -> tuple[str, Any]:
        """The answer; whatever it waits for, the process is killed when the time is up."""
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
