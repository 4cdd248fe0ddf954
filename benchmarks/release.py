"""A tiny release against Prefect alone: the same flows, tasks and artifacts with empty bodies.

Every round releases changed data, as a schedule would: all steps run, up to a published version.
Both sides use the same server; every import is done before the first round.
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

from benchmarks.harness import Comparison, Side, say
from benchmarks.tiny_table import write_release, write_table

if TYPE_CHECKING:
    from flows.config.release_file import ReleaseFile

ROWS = 150


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    with tempfile.TemporaryDirectory(prefix="ppdm-bench-") as folder, home_in(Path(folder)) as home:
        from ppdm.cli.flow_runs import preload_imports
        from ppdm.services.prefect_server import use_prefect_server

        with use_prefect_server(home, say, meanwhile=preload_imports):
            yield [comparison(Path(folder))]


@contextmanager
def home_in(folder: Path) -> Iterator[Path]:
    """The benchmark never touches a steward's real home."""
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


def comparison(folder: Path) -> Comparison:
    from benchmarks.bare import bare_release
    from flows.config.release_file import load

    file = load(write_release(folder))
    seeds = count(1)
    write_table(folder, next(seeds), ROWS)
    real_release(file)  # the first one makes the key, the fit and the databases
    write_table(folder, next(seeds), ROWS)
    before = datetime.now(UTC)
    real_release(file)
    bare = bare_release(file, artifacts_since(before, file.dataset.name))
    return Comparison(
        "tiny release",
        Side(
            f"{ROWS} rows released, attacked, judged and published",
            lambda: real_release(file),
            prepare=lambda: write_table(folder, next(seeds), ROWS),
        ),
        Side("Prefect alone: the same flows, tasks and artifacts, empty bodies", bare),
        at_most=1.5,
    )


def real_release(file: ReleaseFile) -> None:
    from benchmarks.bare import without_heartbeats
    from flows.release import release

    with without_heartbeats():
        state = release(file, return_state=True)
    if state.name != "Published":
        raise RuntimeError(f"The release ended as {state.name}.")


def artifacts_since(moment: datetime, dataset: str) -> list[dict[str, Any]]:
    """What a release left on the server, to be left again by the bare one."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_artifacts(limit=200)
    key = dataset.replace("_", "-")
    return [
        {"type": each.type, "key": f"bare-{each.key}", "data": each.data}
        for each in found
        if each.key and each.key.startswith(key) and each.created and each.created >= moment
    ]
