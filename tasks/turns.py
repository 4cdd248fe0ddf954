"""Releases take turns: those of one dataset from the first step to the last, and those of one home
too, because they share a DuckDB file and a small Prefect server that do not serve two at once."""

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
    holder = f"a release of {plan.dataset}"
    with (
        hold(home.dataset_lock(plan.dataset), holder=holder, limit=TURN_LIMIT, say=say),
        hold(home.locks / "releases.lock", holder=holder, limit=TURN_LIMIT, say=say),
    ):
        yield
