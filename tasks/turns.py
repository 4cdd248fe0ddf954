"""Releases of one dataset take turns, from the first step to the last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tasks.plan import Plan, say
from warehouse.home import Home
from warehouse.locks import hold
from warehouse.store import LOCK_LIMIT


@contextmanager
def taking_turns(plan: Plan) -> Iterator[None]:
    from pathlib import Path

    home = Home(Path(plan.home))
    home.create()
    lock = home.dataset_lock(plan.dataset)
    with hold(lock, holder=f"a release of {plan.dataset}", limit=LOCK_LIMIT, say=say):
        yield
