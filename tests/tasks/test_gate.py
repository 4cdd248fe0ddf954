from __future__ import annotations

import os
from pathlib import Path

import pytest

from ppdm_core.policy import Policy
from tasks.gate import earlier_refusals
from tasks.plan import Plan
from warehouse.columns import Source
from warehouse.home import Home
from warehouse.runs import begin_run
from warehouse.store import Run, Store, keep_fact

REFUSED = ("raw", "validated", "sanitized", "audited", "refused")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.create()
    return Store(home)


def run_to(
    store: Store, stages: tuple[str, ...], *, source: str, file: str, method: str = "pca_laplace"
) -> Run:
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
        with store.advance(run, stage) as change:
            if stage == "sanitized":
                keep_fact(change.db, run, "sanitized", {"method": method})
    return run


def plan_of(waiver: str = "") -> Plan:
    policy = Policy(required=(), limits={}, retry_waiver=waiver)
    source = Source("csv", "wine.csv")
    return Plan(".", "f", ".", "wine", "cellar", "all", source, (), "pca_laplace", {}, policy)


@pytest.mark.parametrize(("waiver", "outcome"), [("", "FAIL"), ("the DPO agreed", "PASS")])
def test_settings_are_not_changed_until_they_pass(store: Store, waiver: str, outcome: str) -> None:
    run_to(store, REFUSED, source="same data", file="first settings")
    run_to(store, REFUSED, source="other data", file="first settings")
    run_to(store, REFUSED, source="same data", file="third settings")
    run = run_to(store, (), source="same data", file="third settings")
    with store.transaction() as db:
        (finding,) = earlier_refusals(db, run, plan_of(waiver))
    assert finding.outcome == outcome
    assert "(wine-0001)." in finding.why
    assert ("the DPO agreed" in finding.why) == bool(waiver)


def test_a_refusal_of_another_method_is_told(store: Store) -> None:
    run_to(store, REFUSED, source="same data", file="first", method="random_rotation")
    run = run_to(store, (), source="same data", file="second")
    with store.transaction() as db:
        (finding,) = earlier_refusals(db, run, plan_of())
    assert finding.outcome == "PASS"
    assert "wine-0001" in finding.why


def test_a_first_try_has_nothing_to_tell(store: Store) -> None:
    run = run_to(store, (), source="same data", file="first settings")
    with store.transaction() as db:
        assert earlier_refusals(db, run, plan_of()) == ()
