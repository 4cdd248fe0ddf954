"""`up` and `down` with small stand-ins for the servers; the real ones are in the slow tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ppdm.services import services
from ppdm.services.prefect_server import open_users, start
from ppdm.services.processes import Running, listening, members, running_as, write_record
from ppdm_core.model.errors import BadInput, MachineTrouble
from warehouse.home import Home

Starter = Callable[[Path], Running]


def started(code: str, *arguments: str) -> int:
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], start_new_session=True)
    process.returncode = 0  # it is ended by the code under test
    return process.pid


def standing_in(service: str, code: str) -> Starter:
    """A process that is recorded as a service and runs ``code`` with a port as its argument."""

    def begin(root: Path) -> Running:
        with listening(0) as listener:
            port = listener.getsockname()[1]
        running = running_as(started(code, str(port), service), port, service, "/")
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
    Home(tmp_path / "home").create()
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


def test_two_at_once_start_each_service_once(home: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(services.start_missing, home, print) for _ in range(2)]
    first, second = (answer.result() for answer in answers)
    assert first == second == services.up(home)
    services.stop_services(home, now=False)


def test_an_interrupted_start_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(services, "wait_for_health", interrupt)
    with pytest.raises(KeyboardInterrupt):
        services.start_services(home)
    assert services.up(home) == {}


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineTrouble, match="cannot be made"):
        services.start_services(tmp_path / "file" / "home")
    with pytest.raises(BadInput, match="There is no home"):
        services.stop_services(tmp_path / "typo", now=False)


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
    running = running_as(started(script, "7", "server"), 7, "server", "/")
    deadline = time.monotonic() + 10
    while len(members(running.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert running.is_alive
    running.stop()
    assert members(running.pid) == []
