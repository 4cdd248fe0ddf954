from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ppdm.services.prefect_server import ServerHandle, stop_orphaned_server, use_prefect_server
from ppdm.services.processes import ServerProcess, read_record, write_record
from ppdm_core.model.errors import MachineTrouble
from tasks.environment import bypass_proxies, set_library_defaults
from tasks.ingest.dead_runs import mark_crashed
from tests.support.forkserver import start_cli

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = "tests.support.harness_commands"


def use_own_server(home: Path) -> dict[str, str | None]:
    """Return the environment of a command that uses the server of its home."""
    return {"PREFECT_API_URL": None, "PREFECT_HOME": str(home / "views" / "prefect")}


def read_server(home: Path) -> ServerProcess:
    running = read_record(home / "private" / "server.json")
    assert running is not None
    return running


def wait_until_gone(running: ServerProcess, limit: float) -> None:
    deadline = time.monotonic() + limit
    while running.is_alive:
        assert time.monotonic() < deadline, "the server is still alive"
        time.sleep(0.05)


@pytest.fixture
def home(tmp_path: Path, prefect_template: Path) -> Iterator[Path]:
    (tmp_path / "views" / "prefect").mkdir(parents=True)
    shutil.copy(prefect_template, tmp_path / "views" / "prefect")  # a first start takes longer
    yield tmp_path
    running = read_record(tmp_path / "private" / "server.json")
    if running is not None:
        running.stop()


@pytest.mark.slow
def test_server_two_commands_shared_and_stopped_by_the_last(home: Path) -> None:
    entry = f"{COMMANDS}:use_server"
    first = start_cli([str(home), str(home / "first")], env=use_own_server(home), entry=entry)
    first.wait_for("42")
    running = read_server(home)
    assert os.getsid(running.pid) == running.pid  # Ctrl-C in the terminal does not reach it
    second = start_cli([str(home), str(home / "second")], env=use_own_server(home), entry=entry)
    second.wait_for("42")
    assert second.output() == (first.output()[0], "")
    assert read_server(home) == running

    (home / "first").touch()
    assert first.wait(30).exit_code == 0
    stop_orphaned_server(home)
    assert running.is_healthy(5)

    (home / "second").touch()
    assert second.wait(30).exit_code == 0
    assert not running.is_alive
    assert not running.is_healthy(1)
    assert not (home / "private" / "server.json").exists()
    assert_complete(home)


def assert_complete(home: Path) -> None:
    """Check that the server received all states and logs before it stopped."""
    runs = "select id, state_name from flow_run where name = ?"
    finished = "select count(*) from log where flow_run_id = ? and message like 'Finished%'"
    with closing(sqlite3.connect(home / "views" / "prefect" / "prefect.db")) as connection:
        ours = connection.execute(runs, [str(home)]).fetchall()
        assert [state for _, state in ours] == ["Completed", "Completed"]
        logs = [connection.execute(finished, [run_id]).fetchone() for run_id, _ in ours]
        assert logs == [(2,), (2,)]  # one of the task, one of the flow


def test_stop_orphaned_server_killed_command_stops_it(home: Path) -> None:
    command = start_cli([str(home)], env=use_own_server(home), entry=f"{COMMANDS}:spawn_server")
    command.wait_for("spawned")
    running = read_server(home)
    command.kill()
    command.wait()
    assert running.is_alive
    stop_orphaned_server(home)
    assert not running.is_alive
    assert not (home / "private" / "server.json").exists()


@pytest.mark.slow
def test_server_killed_command_exits_by_itself(home: Path) -> None:
    command = start_cli([str(home)], env=use_own_server(home), entry=f"{COMMANDS}:spawn_server")
    command.wait_for("spawned")
    running = read_server(home)
    time.sleep(1.5)
    assert running.is_alive
    command.kill()
    command.wait()
    wait_until_gone(running, 120)


def test_stop_orphaned_server_foreign_process_is_ignored(home: Path) -> None:
    stop_orphaned_server(home)
    (home / "private").mkdir()
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            arguments = f"-m ppdm.services.prefect_process 5 {home} shared"
            record = ServerProcess(sleeper.pid, arguments, 1, "/api/health")
            write_record(home / "private" / "server.json", record)
            stop_orphaned_server(home)
            assert sleeper.poll() is None
            assert not (home / "private" / "server.json").exists()
        finally:
            sleeper.kill()


def test_stop_orphaned_server_copied_home_leaves_the_server_of_the_original(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    command = start_cli([str(home)], env=use_own_server(home), entry=f"{COMMANDS}:spawn_server")
    command.wait_for("spawned")
    running = read_server(home)
    copy = tmp_path_factory.mktemp("copy")
    (copy / "private").mkdir()
    shutil.copy(home / "private" / "server.json", copy / "private")
    stop_orphaned_server(copy)
    assert running.is_alive
    assert not (copy / "private" / "server.json").exists()
    command.kill()
    command.wait()


@pytest.mark.parametrize("arguments", ["-m 'x", 7, None])
def test_read_record_other_form_is_none(tmp_path: Path, arguments: object) -> None:
    path = tmp_path / "server.json"
    fields = {"pid": 1, "arguments": arguments, "port": 1, "health": "/"}
    path.write_text(json.dumps(fields))
    assert read_record(path) is None


def test_is_alive_other_arguments_or_pid_is_false(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(home / "unused"))
    handle = ServerHandle(home, print)
    running = read_server(home)
    assert running.is_alive
    assert str(home) in running.arguments
    assert not replace(running, arguments=running.arguments + "0").is_alive
    assert not replace(running, pid=os.getpid()).is_alive
    assert os.environ["PREFECT_API_URL"] == f"http://127.0.0.1:{running.port}/api" == handle.url
    handle.close()
    assert not running.is_alive
    assert "PREFECT_API_URL" not in os.environ


def test_use_prefect_server_dies_while_starting_raises(home: Path) -> None:
    def kill_it() -> None:
        os.kill(read_server(home).pid, signal.SIGKILL)

    with (
        pytest.raises(MachineTrouble, match="ended while it started") as trouble,
        use_prefect_server(home, print, kill_it),
    ):
        pytest.fail("there is no server")
    assert "server.log" in str(trouble.value)
    assert not (home / "private" / "server.json").exists()


def test_use_prefect_server_given_address_starts_none(home: Path, prefect_api: str) -> None:
    with use_prefect_server(home, print) as url:
        assert url == prefect_api
        assert not (home / "private" / "server.json").exists()
    with use_prefect_server(home, print) as url:
        assert url == prefect_api == os.environ["PREFECT_API_URL"]


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/api", "nonsense"])
def test_use_prefect_server_given_address_silent_raises(
    address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", address)
    with (
        pytest.raises(MachineTrouble, match="PREFECT_API_URL") as trouble,
        use_prefect_server(home, print),
    ):
        pytest.fail("there is no server")
    assert trouble.value.exit_code == 5


def test_mark_crashed_killed_process_marks_its_run(prefect_api: str) -> None:
    from prefect.client.orchestration import get_client

    command = start_cli([], entry=f"{COMMANDS}:hang_in_flow")
    command.wait_for("inside")
    run = command.output()[0].split()[0]
    command.kill()
    command.wait()
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(run).state_name == "Running"
        mark_crashed(run)
        assert client.read_flow_run(run).state_name == "Crashed"


def test_mark_crashed_ended_or_unknown_run_does_nothing(prefect_api: str) -> None:
    from prefect import flow

    @flow
    def short() -> None: ...

    state = short(return_state=True)
    run_id = str(state.state_details.flow_run_id)
    mark_crashed(run_id)
    mark_crashed("00000000-0000-4000-8000-000000000000")
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        assert client.read_flow_run(run_id).state_name == "Completed"


def test_quiet_environment_variables_set_by_user_stay(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    monkeypatch.delenv("PREFECT_HOME")
    monkeypatch.delenv("MPLCONFIGDIR")
    set_library_defaults(home)
    assert os.environ["DO_NOT_TRACK"] == "0"
    assert os.environ["PREFECT_HOME"] == str(home / "views" / "prefect")
    assert Path(os.environ["MPLCONFIGDIR"]).is_relative_to(home)


def test_bypass_proxies_called_twice_adds_local_host_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "example.org")
    bypass_proxies()
    bypass_proxies()
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "127.0.0.1,example.org"


def test_prefect_server_module_imports_nothing_slow() -> None:
    script = (
        "import sys, ppdm.services.prefect_server;"
        "heavy = {'prefect', 'mlflow', 'great_expectations', 'pandas', 'numpy', 'pydantic'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")
