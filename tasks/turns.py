"""Releases of one dataset take turns, from the first step to the last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.plan import Plan, say
from warehouse.home import Home
from warehouse.locks import hold

TURN_LIMIT = 3600.0  # seconds; an audit may take long


@contextmanager
def taking_turns(plan: Plan) -> Iterator[None]:
    home = Home(Path(plan.home))
    home.create()
    lock, holder = home.dataset_lock(plan.dataset), f"a release of {plan.dataset}"
    with hold(lock, holder=holder, limit=TURN_LIMIT, say=say):
        yield
