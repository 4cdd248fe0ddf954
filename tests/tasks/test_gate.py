from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasks.gate import earlier_refusals
from warehouse.home import Home
from warehouse.runs import begin_run
from warehouse.store import Run, Store

REFUSED = ("raw", "validated", "sanitized", "audited", "refused")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.create()
    return Store(home)


def run_to(store: Store, stages: tuple[str, ...], *, source: str, file: str) -> Run:
    run, _ = begin_run(
        store,
        dataset="wine",
        owner="cellar",
        source_digest=source,
        file_digest=file,
        code_version="c",
        pid=os.getpid(),
        flow_run_id=None,
    )
    for stage in stages:
        with store.advance(run, stage):
            pass
    return run


def test_a_pass_after_changed_settings_names_the_refusals(store: Store) -> None:
    run_to(store, REFUSED, source="same data", file="first settings")
    run_to(store, REFUSED, source="other data", file="first settings")
    run_to(store, REFUSED, source="same data", file="third settings")
    run = run_to(store, (), source="same data", file="third settings")
    with store.transaction() as db:
        (finding,) = earlier_refusals(db, run)
    assert finding.outcome == "PASS"
    assert finding.why.endswith("(wine-0001).")


def test_a_first_try_has_nothing_to_tell(store: Store) -> None:
    run = run_to(store, (), source="same data", file="first settings")
    with store.transaction() as db:
        assert earlier_refusals(db, run) == ()
