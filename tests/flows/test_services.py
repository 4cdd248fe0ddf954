"""`up` and `down` with small stand-ins for the servers; the real ones are in the slow tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flows import services
from flows.processes import Running, members, running_as, write_record
from flows.server import open_users, start
from flows.server_process import listening
from ppdm_core.errors import MachineTrouble
from warehouse.home import Home

Starter = Callable[[Path], Running]


def standing_in(service: str, code: str) -> Starter:
    """A process that is recorded as a service and runs ``code`` with a port as its argument."""

    def begin(root: Path) -> Running:
        with listening(0) as listener:
            port = listener.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(port), service], start_new_session=True
        )
        running = running_as(process, port, service, "/")
        write_record(Home(root).up_record(service), running)
        return running

    return begin


ANSWERS = (
    "import http.server, sys\n"
    "class Quiet(http.server.SimpleHTTPRequestHandler):\n"
    "    def log_message(self, *words): pass\n"
    "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Quiet).serve_forever()\n"
)
LATE = "import time; time.sleep(1.5)\n" + ANSWERS
ENDS = "raise SystemExit(1)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(services, "start_prefect", standing_in("prefect", ANSWERS))
    monkeypatch.setattr(services, "start_mlflow", standing_in("mlflow", ANSWERS))
    return tmp_path / "home"


def test_up_records_what_down_stops(home: Path) -> None:
    pages = services.start_services(home).payload["pages"]
    assert Home(home).address("prefect") == pages["prefect"]
    assert Home(home).address("mlflow") == pages["mlflow"]
    running = services.up(home)
    assert services.start_services(home).payload["pages"] == pages
    assert services.stop_services(home, now=False).payload["stopped"] == ["prefect", "mlflow"]
    assert not any(each.is_alive for each in running.values())
    assert services.up(home) == {} and Home(home).address("prefect") is None


def test_waiting_for_a_slow_server_is_told_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "start_mlflow", standing_in("mlflow", LATE))
    Home(home).create()
    told: list[str] = []
    services.start_missing(home, told.append)
    assert told == ["Waiting for the local MLflow server (1 s)."]
    services.stop_services(home, now=False)


def test_what_has_died_is_started_again(home: Path) -> None:
    services.start_services(home)
    before = services.up(home)
    before["mlflow"].stop()
    services.start_services(home)
    after = services.up(home)
    assert after["prefect"] == before["prefect"] and after["mlflow"] != before["mlflow"]
    services.stop_services(home, now=False)


def test_if_one_fails_neither_is_left(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "start_mlflow", standing_in("mlflow", ENDS))
    with pytest.raises(MachineTrouble, match="local MLflow server ended while it started"):
        services.start_services(home)
    assert services.up(home) == {}
    assert list(Home(home).private.glob("up-*.json")) == []


def test_down_does_not_pull_the_server_from_under_a_release(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    pages = services.start_services(home).payload["pages"]
    handle = start(home, print)
    assert handle.url == f"{pages['prefect']}/api"
    with pytest.raises(MachineTrouble, match="in use by a command"):
        services.stop_services(home, now=False)
    handle.close()
    assert set(services.up(home)) == {"prefect", "mlflow"}  # the last user leaves it running
    assert services.stop_services(home, now=True).payload["stopped"] == ["prefect", "mlflow"]


def test_up_does_not_start_a_second_server_on_a_database_in_use(home: Path) -> None:
    import fcntl

    Home(home).create()
    user = open_users(home)
    fcntl.flock(user, fcntl.LOCK_SH)
    try:
        with pytest.raises(MachineTrouble, match="a Prefect server of its own"):
            services.start_services(home)
    finally:
        os.close(user)
    assert services.up(home) == {}


def test_a_taken_port_is_left_to_its_owner() -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        taken = owner.getsockname()[1]
        with listening(taken) as other:
            assert other.getsockname()[1] != taken
    with listening(taken) as free:
        assert free.getsockname()[1] == taken


def test_a_server_ends_with_its_children(tmp_path: Path) -> None:
    script = "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    command = [sys.executable, "-c", script, "7", "server"]
    running = running_as(subprocess.Popen(command, start_new_session=True), 7, "server", "/")
    deadline = time.monotonic() + 10
    while len(members(running.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert running.is_alive
    running.stop()
    assert members(running.pid) == []
