"""`ppdm serve`: run release files on their schedules."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from flows.config.release_file import ReleaseFile
from ppdm.cli.release_files import read_release_file
from ppdm.cli.result import CommandResult
from ppdm.services.deploy import lock_served_files, run_schedules
from ppdm.services.prefect_server import find_lasting_server, use_prefect_server
from ppdm_core.model.errors import BadInput
from tasks.progress import log_progress
from tasks.signing_key import KEY_VARIABLE, find_author_key
from warehouse.home import Home


def serve_files(paths: Sequence[Path]) -> CommandResult:
    """Serve release files until Ctrl-C, SIGTERM, or the end of the server."""
    files = {path.stem: read_release_file(path)[0] for path in paths}
    check_servable(paths, files)
    home = next(iter(files.values())).home()
    Home(home).create()
    check_author_variables(home)
    with (
        lock_served_files(home, files),
        use_prefect_server(home, log_progress) as url,
    ):
        for name, file in files.items():
            log_progress(format_schedule(name, file))
        is_paused = run_schedules([str(path.absolute()) for path in paths], url)
    if is_paused:
        return CommandResult("Stopped; the schedules are paused until the next `ppdm serve`.")
    return CommandResult("Stopped; the runner had to be killed, so pause its schedules in Prefect.")


def check_author_variables(home: Path) -> None:
    """Check the key that signs the releases; each of them reads it from the same variables."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        os.environ[KEY_VARIABLE] = str(Path(named).absolute())  # they run in another folder
    find_author_key(home)


def check_servable(paths: Sequence[Path], files: dict[str, ReleaseFile]) -> None:
    """Raise BadInput if the files cannot be served together, or no server runs for them."""
    if len(files) < len(paths):
        raise BadInput(
            "Two of the release files have the same name; it becomes the deployment's name.",
            remedy="Rename one of them.",
        )
    homes = {str(file.home()) for file in files.values()}
    if len(homes) > 1:
        raise BadInput(
            f"These release files belong to {len(homes)} homes.",
            remedy="Set PPDM_HOME, or serve the files of each folder separately.",
        )
    (home,) = homes
    if not os.environ.get("PREFECT_API_URL") and find_lasting_server(Path(home)) is None:
        raise BadInput(
            "No Prefect server is running for this home.",
            remedy=f"ppdm up --home {shlex.quote(home)}",
        )


def format_schedule(name: str, file: ReleaseFile) -> str:
    """Return one line: when the release of a file runs."""
    if file.schedule is None:
        return f"{name}: no [schedule], so it runs only when it is started in Prefect"
    return f"{name}: {file.schedule.cron} ({file.schedule.timezone})"
