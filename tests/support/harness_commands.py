"""Small commands that the tests of the harness run as processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def echo(args: list[str]) -> None:
    print(*args, os.environ.get("HARNESS"), Path.cwd())
    print("to stderr", file=sys.stderr)
    raise SystemExit(3)


def fail(args: list[str]) -> None:
    sys.excepthook = lambda kind, error, trace: print(f"hook: {kind.__name__}", file=sys.stderr)
    raise KeyError(args[0])


def sleep(args: list[str]) -> None:
    print("asleep", flush=True)
    time.sleep(float(args[0]))


def start_attacks(args: list[str]) -> None:
    """Start an attack process, ask it nothing, and wait."""
    from tests.support.forked_attacks import ForkedProcess, fork_attacks

    fork_attacks()
    process = ForkedProcess()  # it ends when its input is closed
    print(process.pid, "started", flush=True)
    time.sleep(600)


def run_flow(args: list[str]) -> int:
    from prefect import flow, task

    @task
    def double(value: int) -> int:
        return 2 * value

    @flow(flow_run_name=args[0])
    def doubling() -> int:
        return double(21)

    print(doubling(), flush=True)
    return 0


def use_server(args: list[str]) -> None:
    """Use the Prefect server of a home, until a file appears."""
    from ppdm.services.prefect_server import use_prefect_server

    with use_prefect_server(Path(args[0]), lambda text: print(text, file=sys.stderr)) as url:
        print("up", url, flush=True)
        run_flow([args[0]])
        wait_for_file(Path(args[1]))


def spawn_server(args: list[str]) -> None:
    """Start the Prefect server of a home and do not wait for it."""
    from ppdm.services.prefect_server import ServerHandle

    ServerHandle(Path(args[0]), print)
    print("spawned", flush=True)
    time.sleep(600)


def hang_in_flow(args: list[str]) -> None:
    from prefect import flow
    from prefect.runtime import flow_run

    @flow
    def hang() -> None:
        print(flow_run.get_id(), "inside", flush=True)
        time.sleep(600)

    hang()


def wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)
