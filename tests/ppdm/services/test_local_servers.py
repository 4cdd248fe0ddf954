"""`up` and `down` with small substitutes for the servers; the slow tests use the real ones."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from ppdm.cli.down import stop_services
from ppdm.cli.up import start_services
from ppdm.services import local_servers
from ppdm.services.prefect_server import ServerHandle, open_users_lock
from ppdm.services.processes import ServerProcess, open_listener, write_record
from ppdm_core.model.errors import BadInput, MachineTrouble
from warehouse.home import Home

Starter = Callable[[Path], ServerProcess]


def start_script(code: str, port: int, root: Path) -> ServerProcess:
    arguments = ["-c", code, str(port), str(root)]
    process = subprocess.Popen([sys.executable, *arguments], start_new_session=True)
    process.returncode = 0  # the code under test stops it
    return ServerProcess(process.pid, shlex.join(arguments), port, "/")


def make_starter(service: str, code: str) -> Starter:
    """Return a starter of a process that is recorded as a service and runs ``code`` with a port."""

    def begin(root: Path) -> ServerProcess:
        with open_listener(0) as listener:
            port = listener.getsockname()[1]
        running = start_script(code, port, root)
        write_record(Home(root).up_record(service), running)
        return running

    return begin


RESPONDS = (
    "import http.server, sys\n"
    "class Quiet(http.server.SimpleHTTPRequestHandler):\n"
    "    def log_message(self, *words): pass\n"
    "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Quiet).serve_forever()\n"
)
LATE = "import time; time.sleep(1.5)\n" + RESPONDS
ENDS = "raise SystemExit(1)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(local_servers, "start_prefect", make_starter("prefect", RESPONDS))
    monkeypatch.setattr(local_servers, "start_mlflow", make_starter("mlflow", RESPONDS))
    Home(tmp_path / "home").create()
    return tmp_path / "home"


def test_up_down_healthy_servers_recorded_and_stopped(home: Path) -> None:
    pages = start_services(home).payload["pages"]
    assert Home(home).address("prefect") == pages["prefect"]
    assert Home(home).address("mlflow") == pages["mlflow"]
    running = local_servers.find_running_servers(home)
    assert start_services(home).payload["pages"] == pages
    assert stop_services(home, now=False).payload["stopped"] == ["prefect", "mlflow"]
    assert not any(each.is_alive for each in running.values())
    assert local_servers.find_running_servers(home) == {} and Home(home).address("prefect") is None


def test_start_missing_servers_slow_server_logs_one_message(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_servers, "start_mlflow", make_starter("mlflow", LATE))
    Home(home).create()
    messages: list[str] = []
    local_servers.start_missing_servers(home, messages.append)
    assert messages == ["Waiting for the local MLflow server (1 s)."]
    stop_services(home, now=False)


def test_up_dead_server_starts_it_again(home: Path) -> None:
    start_services(home)
    before = local_servers.find_running_servers(home)
    before["mlflow"].stop()
    start_services(home)
    after = local_servers.find_running_servers(home)
    assert after["prefect"] == before["prefect"] and after["mlflow"] != before["mlflow"]
    stop_services(home, now=False)


def test_up_one_server_fails_stops_both(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "start_mlflow", make_starter("mlflow", ENDS))
    with pytest.raises(MachineTrouble, match="local MLflow server ended while it started"):
        start_services(home)
    assert local_servers.find_running_servers(home) == {}
    assert list(Home(home).private.glob("up-*.json")) == []


def test_start_missing_servers_two_at_once_start_each_once(home: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(local_servers.start_missing_servers, home, print) for _ in range(2)]
    first, second = (future.result() for future in futures)
    assert first == second == local_servers.find_running_servers(home)
    stop_services(home, now=False)


def test_up_interrupted_leaves_no_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local_servers, "wait_for_health", interrupt)
    with pytest.raises(KeyboardInterrupt):
        start_services(home)
    assert local_servers.find_running_servers(home) == {}


def test_up_down_impossible_home_raise(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineTrouble, match="cannot be made"):
        start_services(tmp_path / "file" / "home")
    with pytest.raises(BadInput, match="There is no home"):
        stop_services(tmp_path / "typo", now=False)


def test_down_server_in_use_refuses_without_now(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    pages = start_services(home).payload["pages"]
    handle = ServerHandle(home, print)
    assert handle.url == f"{pages['prefect']}/api"
    with pytest.raises(MachineTrouble, match="in use by a command"):
        stop_services(home, now=False)
    handle.close()
    assert set(local_servers.find_running_servers(home)) == {
        "prefect",
        "mlflow",
    }  # the last user does not stop it
    assert stop_services(home, now=True).payload["stopped"] == ["prefect", "mlflow"]


def test_up_shared_server_in_use_refuses(home: Path) -> None:
    import fcntl

    Home(home).create()
    user = open_users_lock(home)
    fcntl.flock(user, fcntl.LOCK_SH)
    try:
        with pytest.raises(MachineTrouble, match="a Prefect server of its own"):
            start_services(home)
    finally:
        os.close(user)
    assert local_servers.find_running_servers(home) == {}


def test_open_listener_taken_port_uses_another() -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        taken = owner.getsockname()[1]
        with open_listener(taken) as other:
            assert other.getsockname()[1] != taken
    with open_listener(taken) as free:
        assert free.getsockname()[1] == taken


def test_stop_server_with_children_stops_all(tmp_path: Path) -> None:
    script = "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    running = start_script(script, 7, tmp_path)
    deadline = time.monotonic() + 10
    while not (children := psutil.Process(running.pid).children()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert running.is_alive
    running.stop()
    assert not running.is_alive
    assert not any(is_running(child) for child in children)


def is_running(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie, which only its parent can end, does not."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
