"""What the tests run in place of ``ppdm`` itself: the same commands, with something injected.

They run in children of the fork server, so that nothing here reaches the tests.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ppdm_core.model.policy import Policy
from ppdm_core.model.score import AuditReport
from warehouse import checkpoints

IN_ATTACKS = frozenset({"attack asked", "shadows drawn", "attacks run"})  # slow to do again
KEY = hashlib.sha256(b"a key that is only for tests").digest()


def make_known() -> None:
    """A dataset's first key is always the same one, so that two homes can be compared."""
    import tqdm

    import warehouse.integrity.dataset_key

    class Known:
        @staticmethod
        def token_bytes(n: int) -> bytes:
            return KEY

    warehouse.integrity.dataset_key.secrets = Known  # type: ignore[assignment]
    tempfile.tempdir = None  # TMPDIR is read again
    tqdm.tqdm.set_lock(threading.RLock())  # its own is a semaphore that a killed process leaves


def with_key(args: list[str]) -> None:
    import ppdm.cli.app

    make_known()
    ppdm.cli.app.main(args)


def noted(args: list[str]) -> None:
    """Writes the name of every checkpoint to the file that is the first argument."""
    path = Path(args[0])

    def note(name: str) -> None:
        with path.open("a") as file:
            file.write(name + "\n")

    checkpoints.LISTENERS.append(note)
    with_key(args[1:])


def counted(args: list[str]) -> None:
    """Writes every transaction, statement and check of the file to the one that is named first,
    and what takes long with whether a transaction is open meanwhile."""
    import tasks.ingest.task
    import tasks.publish.task
    import tasks.sanitize.task
    import warehouse.publishing.publish
    from flows.config import context, release_file
    from ppdm_core.numerics.noise import Noise
    from tasks.audit.attack_process import AttackProcess
    from warehouse.database import Store
    from warehouse.transaction import Transaction

    log = Path(args[0]).open("a")  # noqa: SIM115 - until the process ends
    open_transaction, find_method = Store.transaction, Transaction.__getattr__
    held: list[str] = []  # the transactions that are open

    @contextmanager
    def transaction(store: Store, purpose: str = "reading") -> Iterator[Transaction]:
        log.write(json.dumps({"transaction": purpose}) + "\n")
        with open_transaction(store, purpose) as db:
            held.append(purpose)
            try:
                yield db
            finally:
                held.pop()

    def watch(place: Any, name: str) -> None:
        """Write whether a transaction is open whenever a function is called."""
        watched = getattr(place, name)

        def call(*given: Any, **more: Any) -> Any:
            log.write(json.dumps({"work": name, "is_open": bool(held)}) + "\n")
            return watched(*given, **more)

        setattr(place, name, call)

    watch(Noise, "bits")
    watch(Noise, "name_draws")
    watch(tasks.ingest.task, "compute_code_version")
    watch(tasks.sanitize.task, "stage_rows")
    watch(tasks.sanitize.task, "write_candidate")
    watch(AttackProcess, "ask")
    watch(tasks.ingest.task, "copy_source")
    watch(tasks.publish.task, "format_card")
    watch(tasks.publish.task, "render_report")
    watch(warehouse.publishing.publish, "check_bytes")
    watch(warehouse.publishing.publish, "describe_files")

    def method(db: Transaction, name: str) -> Any:
        found = find_method(db, name)
        if name not in ("execute", "sql"):
            return found

        def run(statement: str, *values: Any) -> Any:
            log.write(json.dumps({"statement": statement}) + "\n")
            return found(statement, *values)

        return run

    for module, name in ((release_file, "check_columns"), (context, "check_settings")):
        checked = getattr(module, name)

        def check(*given: Any, name: str = name, checked: Any = checked) -> None:
            log.write(json.dumps({"check": name}) + "\n")
            checked(*given)

        setattr(module, name, check)
    Store.transaction = transaction  # type: ignore[assignment, method-assign]
    Transaction.__getattr__ = method  # type: ignore[method-assign]
    atexit.register(log.close)
    with_key(args[1:])


def contended(args: list[str]) -> None:
    """At every checkpoint another process asks for the warehouse; the longest wait is written."""
    lock, waits = Path(args[1]), Path(args[0])

    def ask(name: str) -> None:
        command = [sys.executable, "-P", "-c", ASK_FOR_LOCK, str(lock), str(waits), name]
        subprocess.Popen(command, stdout=subprocess.DEVNULL)

    checkpoints.LISTENERS.append(ask)
    with_key(args[2:])


ASK_FOR_LOCK = """
import fcntl, sys, time
lock, waits, name = sys.argv[1:]
with open(lock, "a") as file:
    start = time.monotonic()
    fcntl.flock(file, fcntl.LOCK_EX)
    waited = time.monotonic() - start
with open(waits, "a") as file:
    print(waited, name, file=file)
"""


def killed(args: list[str]) -> None:
    """Dies at the checkpoint that is the first argument."""
    kill_at(args[0])
    with_key(args[1:])


def kill_at(point: str) -> None:
    """Die at a checkpoint; "name #2" is the second time that it is met."""
    wanted, _, number = point.partition(" #")
    met: list[str] = []

    def strike(name: str) -> None:
        met.append(name)
        if name == wanted and met.count(name) == int(number or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.LISTENERS.append(strike)


def killed_at_random(args: list[str]) -> None:
    """Dies at checkpoints outside the attacks, by chance from the seed that is the first argument.

    No key is the same in two homes.
    """
    import random

    import ppdm.cli.app

    rng = random.Random(args[0])

    def strike(name: str) -> None:
        if name not in IN_ATTACKS and rng.random() < 0.3:
            os.kill(os.getpid(), signal.SIGKILL)

    if args[0]:
        checkpoints.LISTENERS.append(strike)
    ppdm.cli.app.main(args[1:])


def asleep(args: list[str]) -> None:
    """With a process of its own, as the attacks are."""
    with subprocess.Popen(["sleep", args[0]]) as child:
        print(child.pid, "asleep", flush=True)


def many_flows(args: list[str]) -> None:
    """Runs flows with subflows and tasks, one after the other."""
    from prefect import flow, task

    @task
    def step() -> None: ...

    @flow
    def inner() -> None:
        step()
        step()

    @flow
    def outer() -> None:
        for _ in range(5):
            inner()

    for _ in range(int(args[0])):
        outer()


def defective(args: list[str]) -> None:
    """A library chokes on a cell, which is the first argument, and quotes it."""
    import duckdb

    import tasks.ingest.task

    def profile(*given: object, **more: object) -> None:
        raise duckdb.ConversionException(f"Could not convert string '{args[0]}' to DOUBLE")

    tasks.ingest.task.profile = profile  # type: ignore[assignment]
    with_key(args[1:])


def other_code(args: list[str]) -> None:
    """As if the program had been changed."""
    import tasks.ingest.task
    import tasks.publish.task
    from tasks.audit.self_test import FOUND_TESTS, name_version

    other = "0123456789abcdef"
    for module in (tasks.ingest.task, tasks.publish.task):
        module.compute_code_version = lambda: other  # type: ignore[assignment]
    version = name_version(other)
    known = {(home, version, name): found for (home, _, name), found in FOUND_TESTS.items()}
    FOUND_TESTS.update(known)
    prepared(args)


def without_audit(args: list[str]) -> None:
    """The audit that is the first argument is never asked for."""
    import tasks.audit.task

    every = tasks.audit.task.choose_audits

    def without_one(policy: Policy) -> tuple[str, ...]:
        return tuple(name for name in every(policy) if name != args[0])

    tasks.audit.task.choose_audits = without_one
    prepared(args[1:])


def without_self_test(args: list[str]) -> None:
    """The audit does not test itself, or only its attacks or its policy, whichever is left out."""
    from tasks.audit.self_test import SelfTestRun

    if args[0] == "attacks":
        SelfTestRun.check_attacks = lambda *given: None  # type: ignore[method-assign]
    elif args[0] == "policy":
        test = SelfTestRun.check_policy
        SelfTestRun.check_policy = lambda *given: forgetful(test(*given))  # type: ignore[method-assign]
    else:
        SelfTestRun.check_policy = lambda test, process, job, report: report  # type: ignore[method-assign]
    prepared(args[1:])


def forgetful(report: AuditReport) -> AuditReport:
    assert report.self_test is not None
    return replace(report, self_test=replace(report.self_test, policy_check=None))


def killed_steps(args: list[str]) -> None:
    kill_at(args[0])
    prepared(args[1:])


def edited(args: list[str]) -> None:
    """The release file becomes the second argument at the checkpoint that is the first one."""
    point, other, *rest = args

    def edit(name: str) -> None:
        if name == point:
            shutil.copyfile(other, rest[-1])

    checkpoints.LISTENERS.append(edit)
    prepared(rest)


def prepared(args: list[str]) -> None:
    """The steps of a release, without Prefect, up to the one that is the first argument."""
    from ppdm.cli.release_files import read_release_file
    from tasks.audit import task as audit
    from tasks.dataset_lock import hold_dataset
    from tasks.ingest import task as ingest
    from tasks.judge import task as gate
    from tasks.publish import task as publish
    from tasks.sanitize import task as sanitize
    from tasks.signing_key import load_author_key
    from warehouse.runs import drop_old_tables, remove_files

    make_known()
    context = read_release_file(Path(args[-1]))[1]
    load_author_key(Path(context.home))
    with hold_dataset(context):
        release_id = ingest.begin_release.fn(context)
        for step in (
            ingest.load_raw,
            ingest.validate,
            sanitize.draw_candidate,
            audit.attack_shadows,
            gate.judge,
        ):
            step.fn(context, release_id)
            if step.name == args[0]:
                return
        print(publish.publish_candidate.fn(context, release_id, False))
        store = context.open_store()
        with store.transaction("tests") as db:
            ended = drop_old_tables(db, context.dataset, context.keep_raw)
        remove_files(store.home, context.dataset, ended)


def as_user(args: list[str]) -> None:
    """The command as another operating-system user, who is let in everywhere."""
    os.setresuid(int(args[0]), 0, 0)
    with_key(args[1:])


def approved_by(args: list[str]) -> None:
    """Approve a release as a user and try to publish it, without Prefect; the process is killed at
    the checkpoint that is the second argument."""
    from ppdm.cli.release_files import read_release_file
    from tasks.dataset_lock import hold_dataset
    from tasks.judge.decision import record_decision
    from tasks.publish.task import publish_candidate

    user, point, release_id, file = args
    os.setresuid(int(user), 0, 0)
    make_known()
    context = read_release_file(Path(file))[1]
    record_decision(context, release_id, "approve", "I looked at it.")
    kill_at(point)
    with hold_dataset(context):
        print(publish_candidate.fn(context, release_id, False))


def approved_with_key(args: list[str]) -> None:
    """Approve a release with a key and try to publish it, without Prefect; the process is killed at
    the checkpoint that is the second argument."""
    from ppdm.cli.release_files import read_release_file
    from tasks.dataset_lock import hold_dataset
    from tasks.judge.decision import record_decision
    from tasks.publish.task import publish_candidate
    from tasks.signing_key import read_private_key

    key_file, point, release_id, file = args
    make_known()
    context = read_release_file(Path(file))[1]
    key = read_private_key(Path(key_file))
    kill_at(point)
    record_decision(context, release_id, "approve", "I looked at it.", None, key)
    with hold_dataset(context):
        print(publish_candidate.fn(context, release_id, False))


def approved_in_a_group(args: list[str]) -> None:
    """A user with no rights but those of the group that shares the home approves a release."""
    from ppdm.cli.release_files import read_release_file
    from tasks.judge.decision import record_decision
    from tasks.release_summary import read_summary

    user, group, release_id, file = args
    context = read_release_file(Path(file))[1]
    read_summary(context.open_store(), release_id)  # loads all that the user may not read
    os.setgroups([])
    os.setresgid(int(group), int(group), int(group))
    os.setresuid(int(user), int(user), int(user))
    record_decision(context, release_id, "approve", "I looked at it.")
    standing = read_summary(context.open_store(), release_id).standing
    print(standing.missing if standing else "nothing waits")


def withdrawn_in_a_group(args: list[str]) -> None:
    """A user with no rights but those of the group that shares the home withdraws a version."""
    from ppdm.cli.home import open_home
    from warehouse.publishing.withdraw import withdraw_version

    user, group, home, release_id, reason = args
    os.setgroups([])
    os.setresgid(int(group), int(group), int(group))
    os.setresuid(int(user), int(user), int(user))
    store = open_home(Path(home))
    store.home.create()
    print(withdraw_version(store, release_id, reason).by)
