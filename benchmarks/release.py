"""A tiny release against Prefect alone: the same flows, tasks and artifacts with empty bodies.

Every round releases changed data, so all steps run and a version is published. Both sides use the
same server, and all modules are imported before the first round.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Comparison, Side, log
from benchmarks.tiny_table import write_release, write_table

if TYPE_CHECKING:
    from flows.config.release_file import ReleaseFile

ROWS = 480  # fewer do not certify the limits


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Start a server and compare a release with an empty one."""
    with (
        tempfile.TemporaryDirectory(prefix="ppdm-bench-") as folder,
        use_temporary_home(Path(folder)) as home,
    ):
        from ppdm.cli.flow_runs import preload_imports
        from ppdm.services.prefect_server import use_prefect_server

        with use_prefect_server(home, log, meanwhile=preload_imports):
            yield [build_comparison(Path(folder))]


@contextmanager
def use_temporary_home(folder: Path) -> Iterator[Path]:
    """Use a home in ``folder``, so that the benchmark never touches a real home."""
    from warehouse.home import Home

    given = os.environ.get("PPDM_HOME")
    home = folder / ".ppdm"
    Home(home).create()
    os.environ["PPDM_HOME"] = str(home)
    try:
        yield home
    finally:
        del os.environ["PPDM_HOME"]
        if given is not None:
            os.environ["PPDM_HOME"] = given


def build_comparison(folder: Path) -> Comparison:
    """Return the comparison of real releases with the empty one."""
    from benchmarks.empty_release import build_empty_release
    from flows.config.release_file import load

    file = load(write_release(folder))
    seeds = count(1)
    write_table(folder, next(seeds), ROWS)
    run_release(file)  # the first release creates the key, the fit and the databases
    write_table(folder, next(seeds), ROWS)
    before = datetime.now(UTC)
    run_release(file)
    empty = build_empty_release(file, read_artifacts_since(before, file.dataset.name))
    return Comparison(
        "tiny release",
        Side(
            f"{ROWS} rows released, attacked, judged and published",
            lambda: run_release(file),
            prepare=lambda: write_table(folder, next(seeds), ROWS),
        ),
        Side("Prefect alone: the same flows, tasks and artifacts, empty bodies", empty),
        at_most=1.5,
    )


def run_release(file: ReleaseFile) -> None:
    """Run a real release, which must be published."""
    from benchmarks.empty_release import disable_heartbeats
    from flows.release import release
    from warehouse.stages import Stage

    with disable_heartbeats():
        state = release(file, return_state=True)
    stage = state.result(raise_on_failure=False)
    if stage != Stage.PUBLISHED:
        raise RuntimeError(f"The release ended as {stage}: {state.message}")


def read_artifacts_since(moment: datetime, dataset: str) -> list[dict[str, Any]]:
    """Return the artifacts of a release, for the empty release to create again."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import ArtifactSort

    with get_client(sync_client=True) as client:
        found = client.read_artifacts(sort=ArtifactSort.CREATED_DESC, limit=200)
    key = dataset.replace("_", "-")
    return [
        {"type": each.type, "key": f"empty-{each.key}", "data": each.data}
        for each in found
        if each.key and each.key.startswith(key) and each.created and each.created >= moment
    ]
