"""Releases of one dataset take turns; a tick whose last one is still running is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from prefect.context import FlowRunContext

from ppdm_core.model.errors import MachineTrouble
from tasks.context import Plan
from tasks.progress import log_progress
from warehouse.home import Home
from warehouse.locks import hold, holder_of

TURN_LIMIT = 3600.0  # seconds; an audit may take long


class StillRunning(MachineTrouble):
    """The last run of the same deployment has not ended."""


@contextmanager
def taking_turns(plan: Plan) -> Iterator[None]:
    home = Home(Path(plan.home))
    home.create()
    holder = f"a release of {plan.dataset}"
    with ExitStack() as held:
        deployment = scheduled_by()
        if deployment is not None:
            held.enter_context(only_tick(home, deployment, holder))
        lock = home.dataset_lock(plan.dataset)
        held.enter_context(hold(lock, holder=holder, limit=TURN_LIMIT, say=log_progress))
        yield


@contextmanager
def only_tick(home: Home, deployment: str, holder: str) -> Iterator[None]:
    """Of one deployment: another file of the same dataset waits for its turn instead."""
    lock = home.locks / f"tick-{deployment}.lock"
    with ExitStack() as held:
        try:
            held.enter_context(hold(lock, holder=holder, limit=1.0, say=log_progress))
        except MachineTrouble:
            who = holder_of(lock)
            if who is None:
                raise
            raise StillRunning(
                f"The last tick of this schedule is still running: {who}. This one was skipped.",
                remedy="Schedule it less often if this happens again.",
            ) from None
        yield


def scheduled_by() -> str | None:
    """The deployment whose schedule made this run; None if a person did."""
    context = FlowRunContext.get()  # Prefect's own ``runtime`` would ask the server
    flow_run = context.flow_run if context else None
    return str(flow_run.deployment_id) if flow_run and flow_run.auto_scheduled else None
