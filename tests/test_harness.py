from __future__ import annotations

import signal
import time
import uuid
from pathlib import Path

import pytest

from tests.support.forkserver import run_cli, start_cli

COMMANDS = "tests.support.harness_commands"


def test_run_cli_environment_and_folder_used(tmp_path: Path) -> None:
    env = {"HARNESS": "yes"}
    result = run_cli(["a", "b"], env=env, cwd=tmp_path, entry=f"{COMMANDS}:echo")
    assert (result.exit_code, result.stdout) == (3, f"a b yes {tmp_path}\n")
    assert result.stderr == "to stderr\n"


def test_run_cli_second_call_imports_shared(tmp_path: Path) -> None:
    run_cli([], entry=f"{COMMANDS}:echo")
    start = time.monotonic()
    run_cli([], entry=f"{COMMANDS}:echo")
    assert time.monotonic() - start < 2


def test_run_cli_uncaught_error_hook_and_exit_code_1() -> None:
    result = run_cli(["x"], entry=f"{COMMANDS}:fail")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "hook: KeyError\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_start_cli_signal_ends_command(number: signal.Signals) -> None:
    command = start_cli(["60"], entry=f"{COMMANDS}:sleep")
    command.wait_for("asleep")
    command.send(number)
    assert command.wait(10).exit_code == -number


def test_run_cli_timeout_killed_and_reported() -> None:
    with pytest.raises(AssertionError, match="did not end within"):
        run_cli(["60"], timeout=0.5, entry=f"{COMMANDS}:sleep")


def test_run_cli_flow_run_stored_on_test_server(prefect_api: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    name = f"harness-{uuid.uuid4()}"
    result = run_cli([name], entry=f"{COMMANDS}:run_flow")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "42\n", "")
    with get_client(sync_client=True) as client:
        named = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
        (run,) = client.read_flow_runs(flow_run_filter=named, limit=10)
    assert run.state_name == "Completed"


def test_forked_attacks_killed_command_ends_them() -> None:
    command = start_cli([], entry=f"{COMMANDS}:start_attacks")
    command.wait_for("started")
    process = Path("/proc") / command.output()[0].split()[0]
    assert process.exists()
    command.kill()
    command.wait()
    deadline = time.monotonic() + 60
    while process.exists():
        assert time.monotonic() < deadline, "the attack process is still alive"
        time.sleep(0.05)
