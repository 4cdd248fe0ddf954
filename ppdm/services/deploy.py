"""`ppdm serve`: a Prefect deployment for each release file, run here on its schedule."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from flows.config.release_file import ReleaseFile
from ppdm.cli.progress import shown_progress
from ppdm.cli.release import read_file
from ppdm.cli.result import Answer
from ppdm.services.prefect_server import is_reachable, lasting_server, prefect_server
from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.progress import SERVED_VARIABLE, log_progress
from warehouse.home import Home
from warehouse.locks import hold

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

POLL_EVERY = 5.0  # seconds between questions for due releases
LOOK_EVERY = 2.0  # seconds between looks at the server
GONE_AFTER = 3  # looks without an answer; the runner itself would complain at length
END_GRACE = 30.0


def serve_files(paths: Sequence[Path]) -> Answer:
    """Until Ctrl-C, SIGTERM, or the end of the server."""
    files = {path.stem: read_file(path)[0] for path in paths}
    check_together(paths, files)
    home = next(iter(files.values())).home()
    Home(home).create()
    # Lines, because the releases write below them.
    with (
        shown_progress(live=False),
        serving(home, files),
        prefect_server(home, log_progress) as url,
    ):
        for name, file in files.items():
            log_progress(described(name, file))
        is_paused = supervise([str(path.absolute()) for path in paths], url)
    if is_paused:
        return Answer("Stopped; the schedules are paused until the next `ppdm serve`.")
    return Answer("Stopped; the runner had to be killed, so pause its schedules in Prefect.")


def check_together(paths: Sequence[Path], files: dict[str, ReleaseFile]) -> None:
    if len(files) < len(paths):
        raise BadInput(
            "Two of the release files have the same name; it becomes the deployment's name.",
            remedy="Rename one of them.",
        )
    homes = {str(file.home()) for file in files.values()}
    if len(homes) > 1:
        raise BadInput(
            f"These release files belong to {len(homes)} homes.",
            remedy="Set PPDM_HOME, or serve the files of each folder by themselves.",
        )
    (home,) = homes
    if not os.environ.get("PREFECT_API_URL") and lasting_server(Path(home)) is None:
        raise BadInput(
            "No Prefect server is running for this home.",
            remedy=f"ppdm up --home {shlex.quote(home)}",
        )


@contextmanager
def serving(home: Path, names: Iterable[str]) -> Iterator[None]:
    """Nobody else serves these files; `ppdm doctor` sees who does."""
    with ExitStack() as held:
        for name in names:
            lock = Home(home).locks / f"serve-{name}.lock"
            held.enter_context(hold(lock, holder=f"ppdm serve {name}", limit=1.0, say=log_progress))
        yield


def described(name: str, file: ReleaseFile) -> str:
    if file.schedule is None:
        return f"{name}: no [schedule], so it runs when somebody starts it in Prefect"
    return f"{name}: {file.schedule.cron} ({file.schedule.timezone})"


def supervise(paths: Sequence[str], url: str) -> bool:
    """Until it is told to stop; whether the schedules are then paused.

    The runner is a child, so that it and its releases end for certain.
    """
    with stopped_by(signal.SIGTERM, signal.SIGHUP):
        child = subprocess.Popen(
            [sys.executable, "-m", "ppdm.services.schedules", str(os.getpid()), *paths],
            cwd=Path(__file__).resolve().parents[2],
            env={**os.environ, SERVED_VARIABLE: "1"},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
        )
        try:
            watch(child, url)
        except KeyboardInterrupt:
            log_progress("stopping; a release that is cut off is continued by the next run")
            child.send_signal(signal.SIGINT)  # the runner pauses its schedules
            with suppress(subprocess.TimeoutExpired):
                child.wait(END_GRACE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return child.returncode == 0


def watch(child: subprocess.Popen[bytes], url: str) -> None:
    silent = 0
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = child.wait(LOOK_EVERY)
            raise MachineTrouble(
                f"The runner of the schedules ended (exit code {code}).",
                remedy="Run `ppdm doctor`, then `ppdm serve` again.",
            )
        silent = 0 if is_reachable(url) else silent + 1
        if silent == GONE_AFTER:
            raise MachineTrouble(
                "The Prefect server has gone.", remedy="Run `ppdm up`, then `ppdm serve` again."
            )


@contextmanager
def stopped_by(*numbers: signal.Signals) -> Iterator[None]:
    """These signals mean the same as Ctrl-C."""

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def deployment_of(name: str, file: ReleaseFile) -> RunnerDeployment:
    from prefect.deployments.runner import EntrypointType, RunnerDeployment
    from prefect.schedules import Cron

    from flows.release import release

    timetable = file.schedule
    return RunnerDeployment.from_flow(
        release,
        name,
        schedule=Cron(timetable.cron, timezone=timetable.timezone) if timetable else None,
        parameters={"file": file.model_dump(mode="json", exclude_none=True)},
        description=f"Releases {file.dataset.name} to {file.dataset.audience}.",
        tags=[f"dataset:{file.dataset.name}", f"method:{file.sanitizer.method}"],
        entrypoint_type=EntrypointType.MODULE_PATH,
        # Prefect's own check drops every property that is called "required", such as that of
        # [audit], and then refuses it. The release file's model checks itself when a run starts.
        enforce_parameter_schema=False,
    )
