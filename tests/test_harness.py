from __future__ import annotations

import signal
import time
import uuid
from pathlib import Path

import pytest

from tests.support.forkserver import run_cli, start_cli

COMMANDS = "tests.support.harness_commands"


def test_a_command_is_a_process_with_its_own_environment_and_folder(tmp_path: Path) -> None:
    env = {"HARNESS": "yes"}
    result = run_cli(["a", "b"], env=env, cwd=tmp_path, entry=f"{COMMANDS}:echo")
    assert (result.exit_code, result.stdout) == (3, f"a b yes {tmp_path}\n")
    assert result.stderr == "to stderr\n"


def test_the_imports_are_paid_only_once(tmp_path: Path) -> None:
    run_cli([], entry=f"{COMMANDS}:echo")
    start = time.monotonic()
    run_cli([], entry=f"{COMMANDS}:echo")
    assert time.monotonic() - start < 2


def test_an_uncaught_error_ends_in_the_hook_and_exit_code_1() -> None:
    result = run_cli(["x"], entry=f"{COMMANDS}:fail")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "hook: KeyError\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_can_be_killed(number: signal.Signals) -> None:
    command = start_cli(["60"], entry=f"{COMMANDS}:sleep")
    command.wait_for("asleep")
    command.send(number)
    assert command.wait(10).exit_code == -number


def test_a_command_that_hangs_is_killed_and_told_of() -> None:
    with pytest.raises(AssertionError, match="did not end within"):
        run_cli(["60"], timeout=0.5, entry=f"{COMMANDS}:sleep")


def test_a_flow_in_a_command_reaches_the_server_of_the_tests(prefect_api: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    name = f"harness-{uuid.uuid4()}"
    result = run_cli([name], entry=f"{COMMANDS}:run_flow")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "42\n", "")
    with get_client(sync_client=True) as client:
        named = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
        (run,) = client.read_flow_runs(flow_run_filter=named, limit=10)
    assert run.state_name == "Completed"
