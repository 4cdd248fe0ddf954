"""What the tests run in place of ``ppdm`` itself: the same commands, with something injected.

They run in children of the fork server, so that nothing here reaches the tests.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from ppdm_core.policy import Policy
from warehouse import checkpoints

KEY = hashlib.sha256(b"a key that is only for tests").digest()


def make_known() -> None:
    """A dataset's first key is always the same one, so that two homes can be compared."""
    import tqdm

    import tasks.keys

    class Known:
        @staticmethod
        def token_bytes(n: int) -> bytes:
            return KEY

    tasks.keys.secrets = Known  # type: ignore[assignment]
    tempfile.tempdir = None  # TMPDIR is read again
    tqdm.tqdm.set_lock(threading.RLock())  # its own is a semaphore that a killed process leaves


def with_key(args: list[str]) -> None:
    import flows.cli

    make_known()
    flows.cli.main(args)


def noted(args: list[str]) -> None:
    """Writes the name of every checkpoint to the file that is the first argument."""
    path = Path(args[0])

    def note(name: str) -> None:
        with path.open("a") as file:
            file.write(name + "\n")

    checkpoints.LISTENERS.append(note)
    with_key(args[1:])


def killed(args: list[str]) -> None:
    """Dies at the checkpoint that is the first argument."""
    kill_at(args[0])
    with_key(args[1:])


def kill_at(point: str) -> None:
    def strike(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.LISTENERS.append(strike)


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

    import tasks.ingest

    def profile(*given: object) -> None:
        raise duckdb.ConversionException(f"Could not convert string '{args[0]}' to DOUBLE")

    tasks.ingest.profile = profile  # type: ignore[assignment]
    with_key(args[1:])


def other_code(args: list[str]) -> None:
    """As if the program had been changed."""
    import tasks.ingest
    import tasks.publish

    for module in (tasks.ingest, tasks.publish):
        module.code_version = lambda: "0123456789abcdef"  # type: ignore[assignment]
    prepared(args)


def without_audit(args: list[str]) -> None:
    """The audit that is the first argument is never asked for."""
    import tasks.audit

    every = tasks.audit.audit_names

    def without_one(policy: Policy) -> tuple[str, ...]:
        return tuple(name for name in every(policy) if name != args[0])

    tasks.audit.audit_names = without_one
    prepared(args[1:])


def killed_steps(args: list[str]) -> None:
    kill_at(args[0])
    prepared(args[1:])


def prepared(args: list[str]) -> None:
    """The steps of a release, without Prefect, up to the one that is the first argument."""
    from flows.commands import read_file
    from tasks import audit, gate, ingest, publish, sanitize
    from tasks.turns import taking_turns

    make_known()
    plan = read_file(Path(args[-1]))[1]
    with taking_turns(plan):
        release_id = ingest.begin.fn(plan)
        for step in (
            ingest.load_raw,
            ingest.validate,
            sanitize.make_draws,
            audit.attack_shadows,
            gate.judge,
        ):
            step.fn(plan, release_id)
            if step.name == args[0]:
                return
        print(publish.leave.fn(plan, release_id, False))
