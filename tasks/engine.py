"""The engine of a release, and the folder of its private parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.context import ReleaseContext
from tasks.notify.prefect_artifacts import ProgressBar
from tasks.progress import log_progress
from warehouse.engines import EngineSettings, load_engine, translate_bad_input
from warehouse.home import CLUSTER_RECORD, Home

if TYPE_CHECKING:
    from warehouse.engines import Engine


def check_engine(context: ReleaseContext) -> None:
    """Raise BadInput if the engine of the release file cannot be used, with its folder.

    The caller holds the lock of the dataset, and no release has begun.
    """
    home = Home(Path(context.home))
    with make_engine(context) as engine:
        try:
            engine.check_folder(home.make_work(context.dataset, context.engine.folder))
        finally:
            home.clear_work(context.dataset)


@contextmanager
def open_engine(context: ReleaseContext) -> Iterator[Engine]:
    """Open the engine of a release that has begun.

    Its settings were checked then, so an error now is a problem of the machines.
    """
    with ExitStack() as opened:
        with translate_bad_input():
            engine = opened.enter_context(make_engine(context))
        yield engine


def make_engine(context: ReleaseContext) -> Engine:
    """Return the engine that the release file names."""
    settings = context.engine
    if settings.kind == "dask" and not settings.address:
        settings = find_home_cluster(Home(Path(context.home)), settings)
    bar = ProgressBar(context.dataset, "parts", "Parts done.")

    def report(done: int, count: int) -> None:
        log_progress(f"part {done:,} of {count:,}", done / count)
        bar.show(done / count)

    return load_engine(settings.kind)(settings, report)


def find_home_cluster(home: Home, settings: EngineSettings) -> EngineSettings:
    """Return the settings of the cluster that `ppdm cluster up` started in the home."""
    folder = home.cluster
    try:
        address = json.loads((folder / CLUSTER_RECORD).read_text())["address"]
    except (OSError, ValueError, KeyError):
        raise BadInput(
            "The engine 'dask' has no address, and the home has no cluster of its own.",
            remedy="Add 'address' to [engine], or start one: ppdm cluster up",
        ) from None
    return replace(
        settings,
        address=address,
        ca=str(folder / "ca.pem"),
        certificate=str(folder / "certificate.pem"),
        private_key=str(folder / "private.key"),
        secret=str(folder / "cluster.key"),
    )


@contextmanager
def open_work(context: ReleaseContext, release_id: str, engine: Engine) -> Iterator[Path]:
    """Return the folder of private parts, which is removed at the end, and after errors.

    After a problem with the machines of a cluster it stays: the next run continues from the parts
    that are there, or removes them if it releases something else.
    """
    home = context.open_store().home
    if not engine.keeps_parts:
        home.clear_work(release_id)
    work = home.make_work(release_id, context.engine.folder)
    try:
        with translate_bad_input():
            engine.check_folder(work)
        yield work
    except MachineTrouble:
        if not engine.keeps_parts:
            home.clear_work(release_id)
        raise
    except BaseException:
        home.clear_work(release_id)
        raise
    home.clear_work(release_id)
