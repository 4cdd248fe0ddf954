from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ppdm_core.model.errors import MachineTrouble
from warehouse.locks import hold, read_holder

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from warehouse.locks import hold
with hold(Path(sys.argv[1]), holder="wdbc-0001", limit=10, say=print):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
COUNTER = """
import sys, time
from pathlib import Path
from warehouse.locks import hold
lock, counter = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(20):
    with hold(lock, holder="counter", limit=60, say=print):
        value = int(counter.read_text())
        time.sleep(0.002)
        counter.write_text(str(value + 1))
"""


@contextmanager
def other_process(path: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(path), str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def quiet(text: str) -> None:
    raise AssertionError(f"nothing to say, but said: {text}")


def test_hold_free_lock_taken_and_freed(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    assert read_holder(path) is None
    with hold(path, holder="wdbc-0007", limit=0, say=quiet):
        assert read_holder(path) == f"wdbc-0007 (pid {os.getpid()})"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_holder(path) is None


def test_hold_error_inside_lock_freed(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with pytest.raises(KeyError), hold(path, holder="a", limit=0, say=quiet):
        raise KeyError
    assert read_holder(path) is None


def test_hold_held_lock_times_out_and_names_holder(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_process(path, 60) as process:
        start = time.monotonic()
        with (
            pytest.raises(MachineTrouble) as trouble,
            hold(path, holder="b", limit=0.3, say=quiet),
        ):
            pytest.fail("held twice")
        assert 0.3 <= time.monotonic() - start < 2
        assert read_holder(path) == f"wdbc-0001 (pid {process.pid})"
    assert f"wdbc-0001 (pid {process.pid})" in trouble.value.message
    assert trouble.value.remedy
    assert trouble.value.exit_code == 5


@pytest.mark.extended
def test_hold_waiting_process_reports_once_then_gets_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    said: list[str] = []
    with (
        other_process(path, 2) as process,
        hold(path, holder="b", limit=30, say=said.append),
    ):
        assert read_holder(path) == f"b (pid {os.getpid()})"
    assert said == [f"Waiting for 'a': wdbc-0001 (pid {process.pid}) holds it."]


def test_hold_killed_holder_lock_freed(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_process(path, 60) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert read_holder(path) is None
        with hold(path, holder="b", limit=0, say=quiet):
            assert read_holder(path) == f"b (pid {os.getpid()})"


def test_hold_three_processes_exclude_each_other(tmp_path: Path) -> None:
    lock, counter = tmp_path / "a.lock", tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", COUNTER, str(lock), str(counter)]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert counter.read_text() == "60"


def test_hold_lock_file_not_creatable_machine_trouble(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "a.lock"
    with (
        pytest.raises(MachineTrouble, match="cannot be opened"),
        hold(path, holder="a", limit=0, say=quiet),
    ):
        pytest.fail("held")
