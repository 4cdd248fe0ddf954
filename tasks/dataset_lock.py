"""The lock of a dataset: one release of it at a time.

A scheduled run whose predecessor is still running is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ppdm_core.model.errors import MachineTrouble
from tasks.context import ReleaseContext
from tasks.progress import log_progress
from warehouse.home import Home
from warehouse.locks import hold, read_holder

LOCK_LIMIT = 3600.0  # seconds; an audit may take long


class StillRunning(MachineTrouble):
    """The last run of the same deployment has not ended."""


@contextmanager
def hold_dataset(context: ReleaseContext) -> Iterator[None]:
    """Hold the lock of the dataset, and that of the schedule if a schedule started this run."""
    home = Home(Path(context.home))
    home.create()
    holder = f"a release of {context.dataset}"
    with ExitStack() as locks:
        deployment = find_deployment()
        if deployment is not None:
            locks.enter_context(hold_schedule(home, deployment, holder))
        lock = home.dataset_lock(context.dataset)
        locks.enter_context(hold(lock, holder=holder, limit=LOCK_LIMIT, say=log_progress))
        yield


def clear_dead_work(home: Home, dataset: str) -> None:
    """Remove the work files of the other datasets of a home, unless a process works on them.

    The caller begins a release of ``dataset``.
    """
    holder = f"a release of {dataset}"
    for other, names in home.list_work().items():
        if other == dataset:
            continue
        lock = home.dataset_lock(other)
        with suppress(MachineTrouble), hold(lock, holder=holder, limit=0.0, say=log_progress):
            for name in sorted(names):
                home.clear_work(name)


@contextmanager
def hold_schedule(home: Home, deployment: str, holder: str) -> Iterator[None]:
    """Hold the lock of one deployment, or raise StillRunning.

    Another release file of the same dataset has another deployment and waits instead.
    """
    lock = home.locks / f"schedule-{deployment}.lock"
    with ExitStack() as locks:
        try:
            locks.enter_context(hold(lock, holder=holder, limit=1.0, say=log_progress))
        except MachineTrouble:
            who = read_holder(lock)
            if who is None:
                raise
            raise StillRunning(
                f"The last run of this schedule has not ended: {who}. This one was skipped.",
                remedy="Schedule it less often if this happens again.",
            ) from None
        yield


def find_deployment() -> str | None:
    """Return the deployment whose schedule made this run; None if a person started it."""
    from prefect.context import FlowRunContext  # not earlier: commands set up its environment first

    context = FlowRunContext.get()  # Prefect's own ``runtime`` would ask the server
    flow_run = context.flow_run if context else None
    return str(flow_run.deployment_id) if flow_run and flow_run.auto_scheduled else None
