from __future__ import annotations

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

from ppdm.services.prefect_server import prefect_server, reap_orphans, start
from ppdm.services.processes import Running, identity_of, read_record, write_record
from ppdm_core.model.errors import MachineTrouble
from tasks.environment import bypass_proxies, quiet_environment
from tasks.ingest.dead_runs import mark_crashed
from tests.support.forkserver import start_cli

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = "tests.support.harness_commands"


def own(home: Path) -> dict[str, str | None]:
    """The environment of a command that uses the server of its home."""
    return {"PREFECT_API_URL": None, "PREFECT_HOME": str(home / "views" / "prefect")}


def record_of(home: Path) -> Running:
    running = read_record(home / "private" / "server.json")
    assert running is not None
    return running


def wait_until_gone(running: Running, limit: float) -> None:
    deadline = time.monotonic() + limit
    while running.is_alive:
        assert time.monotonic() < deadline, "the server is still alive"
        time.sleep(0.05)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    running = read_record(tmp_path / "private" / "server.json")
    if running is not None:
        running.stop()


def test_commands_share_a_server_and_the_last_one_ends_it(
    home: Path, prefect_template: Path
) -> None:
    (home / "views" / "prefect").mkdir(parents=True)
    shutil.copy(prefect_template, home / "views" / "prefect")
    entry = f"{COMMANDS}:use_server"
    first = start_cli([str(home), str(home / "first")], env=own(home), entry=entry)
    first.wait_for("42")
    running = record_of(home)
    assert os.getsid(running.pid) == running.pid  # Ctrl-C in the terminal does not reach it
    second = start_cli([str(home), str(home / "second")], env=own(home), entry=entry)
    second.wait_for("42")
    assert second.output() == (first.output()[0], "")
    assert record_of(home) == running

    (home / "first").touch()
    assert first.wait(30).exit_code == 0
    reap_orphans(home)
    assert running.answers(5)

    (home / "second").touch()
    assert second.wait(30).exit_code == 0
    assert not running.is_alive
    assert not running.answers(1)
    assert not (home / "private" / "server.json").exists()
    assert_complete(home)


def assert_complete(home: Path) -> None:
    """The server has stopped only after it had heard of everything."""
    runs = "select id, state_name from flow_run where name = ?"
    finished = "select count(*) from log where flow_run_id = ? and message like 'Finished%'"
    with closing(sqlite3.connect(home / "views" / "prefect" / "prefect.db")) as connection:
        ours = connection.execute(runs, [str(home)]).fetchall()
        assert [state for _, state in ours] == ["Completed", "Completed"]
        logs = [connection.execute(finished, [run_id]).fetchone() for run_id, _ in ours]
        assert logs == [(2,), (2,)]  # one of the task, one of the flow


def test_an_orphan_is_ended_by_the_next_command(home: Path) -> None:
    command = start_cli([str(home)], env=own(home), entry=f"{COMMANDS}:spawn_server")
    command.wait_for("spawned")
    running = record_of(home)
    command.kill()
    command.wait()
    assert running.is_alive
    reap_orphans(home)
    assert not running.is_alive
    assert not (home / "private" / "server.json").exists()


def test_an_orphan_ends_by_itself_when_no_command_follows(home: Path) -> None:
    command = start_cli([str(home)], env=own(home), entry=f"{COMMANDS}:spawn_server")
    command.wait_for("spawned")
    running = record_of(home)
    time.sleep(1.5)
    assert running.is_alive
    command.kill()
    command.wait()
    wait_until_gone(running, 30)


def test_a_process_that_is_not_ours_is_never_ended(home: Path) -> None:
    reap_orphans(home)
    (home / "private").mkdir()
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            identity = identity_of(sleeper.pid)
            assert identity is not None
            record = Running(
                sleeper.pid, identity[0], 1, "ppdm.services.prefect_process", "/api/health"
            )
            write_record(home / "private" / "server.json", record)
            reap_orphans(home)
            assert sleeper.poll() is None
            assert not (home / "private" / "server.json").exists()
        finally:
            sleeper.kill()


def test_a_server_is_known_by_its_start_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(home / "unused"))
    handle = start(home, print)
    running = record_of(home)
    assert running.is_alive
    assert not replace(running, started=running.started + "0").is_alive
    assert not replace(running, port=running.port + 1).is_alive
    assert not replace(running, word="another program").is_alive
    assert os.environ["PREFECT_API_URL"] == f"http://127.0.0.1:{running.port}/api" == handle.url
    handle.close()
    assert not running.is_alive
    assert "PREFECT_API_URL" not in os.environ


def test_a_server_that_ends_while_it_starts_is_trouble_of_the_machine(home: Path) -> None:
    def kill_it() -> None:
        os.kill(record_of(home).pid, signal.SIGKILL)

    with (
        pytest.raises(MachineTrouble, match="ended while it started") as trouble,
        prefect_server(home, print, kill_it),
    ):
        pytest.fail("there is no server")
    assert "server.log" in str(trouble.value)
    assert not (home / "private" / "server.json").exists()


def test_a_given_server_is_used_and_left_alone(home: Path, prefect_api: str) -> None:
    with prefect_server(home, print) as url:
        assert url == prefect_api
        assert not (home / "private" / "server.json").exists()
    with prefect_server(home, print) as url:
        assert url == prefect_api == os.environ["PREFECT_API_URL"]


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/api", "nonsense"])
def test_a_given_server_that_does_not_answer(
    address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", address)
    with (
        pytest.raises(MachineTrouble, match="PREFECT_API_URL") as trouble,
        prefect_server(home, print),
    ):
        pytest.fail("there is no server")
    assert trouble.value.exit_code == 5


def test_runs_of_a_killed_process_are_marked_as_crashed(prefect_api: str) -> None:
    from prefect.client.orchestration import get_client

    command = start_cli([], entry=f"{COMMANDS}:hang_in_subflow")
    command.wait_for("inside")
    runs = command.output()[0].split()[:2]
    command.kill()
    command.wait()
    with get_client(sync_client=True) as client:
        assert [client.read_flow_run(run).state_name for run in runs] == ["Running", "Running"]
        mark_crashed(runs[0])
        assert [client.read_flow_run(run).state_name for run in runs] == ["Crashed", "Crashed"]


def test_ended_and_unknown_runs_are_left_alone(prefect_api: str) -> None:
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


def test_the_environment_keeps_what_the_user_has_set(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    monkeypatch.delenv("PREFECT_HOME")
    monkeypatch.delenv("MPLCONFIGDIR")
    quiet_environment(home)
    assert os.environ["DO_NOT_TRACK"] == "0"
    assert os.environ["PREFECT_HOME"] == str(home / "views" / "prefect")
    assert Path(os.environ["MPLCONFIGDIR"]).is_relative_to(home)


def test_a_local_server_is_not_looked_for_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "example.org")
    bypass_proxies()
    bypass_proxies()
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "127.0.0.1,example.org"


def test_the_module_imports_nothing_heavy() -> None:
    script = (
        "import sys, ppdm.services.prefect_server;"
        "heavy = {'prefect', 'mlflow', 'great_expectations', 'pandas', 'numpy', 'pydantic'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")
