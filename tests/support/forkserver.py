"""Commands as real processes without their import time: children of a preloaded fork server.

The server is started once per test run (``warm``), for all its processes. No preloaded package
starts a Python thread; the threads of OpenBLAS and jemalloc survive a fork by their own handlers.
"""

from __future__ import annotations

import atexit
import faulthandler
import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

from tests.support.leak_tests import SharedLeakTests, run_shared_leak_tests
from tests.support.shared_files import make_once

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ppdm", "flows", "tasks")
HEAVY = (
    "tests.support.rare_collection",
    "scipy.stats",
    "pandas",
    "pyarrow.parquet",
    "duckdb",
    "sklearn.neighbors",
    "prefect.main",
    "prefect.artifacts",
    "prefect.flow_engine",
    "prefect.task_engine",
    "mlflow.store.tracking.sqlalchemy_store",
    "great_expectations",
)
OF_TESTS = ("tests.support.forkserver", "tests.support.forked_attacks")
# These start the attack process as a release does.
REAL_ATTACKS = ("killed", "killed_steps")
MUTANT = "PPDM_TESTS_MUTANT"  # see mutants.py

_context = multiprocessing.get_context("forkserver")
_is_warm = False


@dataclass(frozen=True)
class Result:
    exit_code: int  # -9 after a SIGKILL
    stdout: str
    stderr: str


class Command:
    """A command that runs."""

    def __init__(self, process: Any, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self.pid: int = process.pid

    @property
    def is_running(self) -> bool:
        return bool(self._process.is_alive())

    def wait_for(self, text: str, timeout: float = 120) -> None:
        """Until it has printed the text to stdout."""
        deadline = time.monotonic() + timeout
        while text not in self.output()[0]:
            if not self.is_running or time.monotonic() > deadline:
                raise AssertionError(f"The command did not print {text!r}: {self.wait(0)}")
            time.sleep(0.02)

    def output(self) -> tuple[str, str]:
        """What it has printed so far."""
        return (self._folder / "stdout").read_text(), (self._folder / "stderr").read_text()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float = 120) -> Result:
        self._process.join(timeout)
        in_time = not self._process.is_alive()
        if not in_time:
            self.send(signal.SIGUSR1)  # shows where each thread is
            time.sleep(0.5)
        self.kill()
        self._process.join()
        result = Result(self._process.exitcode, *self.output())
        self._process.close()
        shutil.rmtree(self._folder)
        if not in_time:
            raise AssertionError(f"The command did not end within {timeout:g} s: {result}")
        return result


def run_cli(
    args: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | str = ROOT,
    timeout: float = 120,
    entry: str = "ppdm.cli.app:main",
) -> Result:
    return start_cli(args, env=env, cwd=cwd, entry=entry).wait(timeout)


def start_cli(
    args: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | str = ROOT,
    entry: str = "ppdm.cli.app:main",
) -> Command:
    """Start ``entry(args)``; ``env`` is added to the environment of the tests, None removes."""
    warm()
    folder = Path(tempfile.mkdtemp(prefix="ppdm-command-"))
    for name in ("stdout", "stderr"):
        (folder / name).touch()
    changed = {**os.environ, **(env or {})}
    environment = {name: value for name, value in changed.items() if value is not None}
    proofs = run_shared_leak_tests() if entry.startswith("tests.support") else {}
    arguments = (entry, list(args), environment, str(cwd), str(folder), proofs)
    process = _context.Process(target=_child, args=arguments)
    process.start()
    return Command(process, folder)


def warm() -> None:
    """Start the fork server of the test run, or join it; its imports go on in the background."""
    global _is_warm
    if _is_warm:
        return
    _is_warm = True
    owner, descriptor, address = make_once("fork server", _start).read_text().splitlines()
    server: Any = forkserver._forkserver
    if int(owner) != os.getpid():
        # It lives while some process holds this end of its pipe.
        server._forkserver_alive_fd = os.open(f"/proc/{owner}/fd/{descriptor}", os.O_WRONLY)
        server._forkserver_address = address
        server.ensure_running = resource_tracker.ensure_running


def _start(path: Path) -> None:
    _context.set_forkserver_preload([*HEAVY, *_own_modules(), *OF_TESTS])
    # Python 3.11 does not hand its search path to the fork server.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    server: Any = forkserver._forkserver
    address = path.with_suffix(".socket")
    os.link(server._forkserver_address, address)  # this process may end before others do
    path.write_text(f"{os.getpid()}\n{server._forkserver_alive_fd}\n{address}\n")


def cool() -> None:
    """Let go of the fork server, which ends with the last process that uses it."""
    if _is_warm:
        os.close(forkserver._forkserver._forkserver_alive_fd)


def _own_modules() -> list[str]:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    paths = [file.relative_to(ROOT).with_suffix("") for file in files if file.stem[0] != "_"]
    return sorted(".".join(path.parts) for path in paths)


def _child(
    entry: str,
    args: list[str],
    environment: dict[str, str],
    cwd: str,
    out: str,
    proofs: dict[Any, Any],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = ["ppdm", *args]
    for number, name in ((1, "stdout"), (2, "stderr")):
        descriptor = os.open(Path(out, name), os.O_WRONLY | os.O_APPEND)
        os.dup2(descriptor, number)
        os.close(descriptor)
    faulthandler.register(signal.SIGUSR1)
    sys.modules["tasks.audit.self_test"].FOUND_TESTS = SharedLeakTests(proofs)  # type: ignore[attr-defined]
    _wake_libraries()
    module, _, name = entry.partition(":")
    is_real = name in REAL_ATTACKS or (MUTANT in environment and "PYTHONPATH" in environment)
    if module == "tests.support.entries" and not is_real:
        sys.modules["tests.support.forked_attacks"].fork_attacks()
    code = _call(entry, args)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


def _wake_libraries() -> None:
    """What an import would have read from the environment or the clock."""
    time.tzset()
    sys.modules["prefect.context"].refresh_global_settings_context()
    sys.modules["numpy"].random.seed()


def _call(entry: str, args: list[str]) -> int:
    """Run the command and end it as the interpreter would."""
    module, name = entry.split(":")
    try:
        code = getattr(importlib.import_module(module), name)(args)
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1
