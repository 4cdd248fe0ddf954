"""A Prefect deployment for each release file, and the process that runs them on their schedules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from flows.config.release_file import ReleaseFile
from ppdm.services.prefect_server import is_reachable
from ppdm_core.model.errors import MachineTrouble
from ppdm_core.model.shown_text import escape_markdown
from tasks.progress import SERVED_VARIABLE, log_progress
from warehouse.home import Home
from warehouse.locks import hold

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

POLL_SECONDS = 5.0  # between queries for due releases
SIGNAL_CHECK_SECONDS = 0.2
SERVER_CHECK_SECONDS = 2.0
MAX_FAILED_CHECKS = 3  # of the server; the runner itself would log at length
STOP_GRACE_SECONDS = 30.0


def build_deployment(name: str, file: ReleaseFile) -> RunnerDeployment:
    """Return the deployment of the release flow with a release file as its parameter."""
    from prefect.deployments.runner import EntrypointType, RunnerDeployment
    from prefect.schedules import Cron

    from flows.release import release

    schedule = file.schedule
    return RunnerDeployment.from_flow(
        release,
        name,
        schedule=Cron(schedule.cron, timezone=schedule.timezone) if schedule else None,
        parameters={"file": file.model_dump(mode="json", exclude_none=True)},
        description=f"Releases {file.dataset.name} to {escape_markdown(file.dataset.audience)}.",
        tags=[f"dataset:{file.dataset.name}", f"method:{file.sanitizer.method}"],
        entrypoint_type=EntrypointType.MODULE_PATH,
        # Prefect's own check drops every property that is called "required", such as that of
        # [audit], and then refuses it. The release file's model checks itself when a run starts.
        enforce_parameter_schema=False,
    )


@contextmanager
def lock_served_files(home: Path, names: Iterable[str]) -> Iterator[None]:
    """Hold a lock for each file, so that no other process serves it and `ppdm doctor` sees it."""
    with ExitStack() as held:
        for name in names:
            lock = Home(home).locks / f"serve-{name}.lock"
            held.enter_context(hold(lock, holder=f"ppdm serve {name}", limit=1.0, say=log_progress))
        yield


def run_schedules(paths: Sequence[str], url: str) -> bool:
    """Run the schedules until Ctrl-C or SIGTERM; return whether they are paused afterwards.

    The runner is a child process, so that it and its releases end for certain.
    """
    signals = note_stop_signals()
    child = subprocess.Popen(
        [sys.executable, "-m", "ppdm.services.schedules", str(os.getpid()), *paths],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, SERVED_VARIABLE: "1"},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        start_new_session=True,
    )
    try:
        watch_runner(child, url, signals)
        log_progress("stopping; an interrupted release is continued by the next run")
        child.send_signal(signal.SIGINT)  # the runner pauses its schedules
        with suppress(subprocess.TimeoutExpired):
            child.wait(STOP_GRACE_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return child.returncode == 0


def note_stop_signals() -> list[int]:
    """Return a list to which every later Ctrl-C, SIGTERM and SIGHUP is added.

    An exception that a handler raises while a process is waited for can leave the lock of
    ``Popen.wait`` held for ever.
    """
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: received.append(number))
    return received


def watch_runner(child: subprocess.Popen[bytes], url: str, signals: Sequence[int]) -> None:
    """Wait for a signal; raise MachineTrouble when the runner or the Prefect server ends."""
    failed_checks, checked = 0, time.monotonic()
    while not signals:
        time.sleep(SIGNAL_CHECK_SECONDS)
        if child.poll() is not None and not signals:
            raise MachineTrouble(
                f"The runner of the schedules ended (exit code {child.returncode}).",
                remedy="Run `ppdm doctor`, then `ppdm serve` again.",
            )
        if time.monotonic() < checked + SERVER_CHECK_SECONDS:
            continue
        failed_checks = 0 if is_reachable(url) else failed_checks + 1
        checked = time.monotonic()
        if failed_checks == MAX_FAILED_CHECKS:
            raise MachineTrouble(
                "The Prefect server no longer responds.",
                remedy="Run `ppdm up`, then `ppdm serve` again.",
            )
