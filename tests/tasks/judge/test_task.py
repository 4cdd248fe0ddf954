from __future__ import annotations

import os
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import tasks.judge.task
from ppdm_core.model.verdict import Finding, Verdict
from tasks.judge.task import EARLIER_REFUSALS, judge_earlier_refusals, reach_verdict
from tests.support.contexts import start_run
from tests.support.facts import make_sanitized_facts, make_validated_facts
from warehouse.clock import now
from warehouse.database import Run, Store
from warehouse.home import Home
from warehouse.stage_facts import ValidatedFacts, read_facts, store_facts
from warehouse.stages import Stage

BEGUN = ("raw", "validated")
REFUSED = ("raw", "validated", "sanitized", "audited", "refused")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.create()
    return Store(home)


def run_to(
    store: Store,
    stages: tuple[str, ...],
    *,
    source: str,
    file: str,
    method: str = "pca_laplace",
    data: str = "",
) -> Run:
    """``data``: what the release uses of the source; if not given, all of it."""
    run, _ = start_run(
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
        with store.advance(run, Stage(stage)) as change:
            if stage == "validated":
                store_facts(change.db, run, make_validated_facts(data=data or source))
                change.detail["data"] = data or source
            if stage == "sanitized":
                store_facts(change.db, run, make_sanitized_facts(method=method))
    return run


def findings(store: Store, run: Run) -> tuple[Finding, ...]:
    with store.transaction() as db:
        data = read_facts(db, run.release_id, ValidatedFacts).data
        return judge_earlier_refusals(db, run, data)


@pytest.mark.parametrize("method", ["pca_laplace", "random_rotation"])
def test_earlier_refusals_other_settings_review(store: Store, method: str) -> None:
    run_to(store, REFUSED, source="same data", file="first settings", method=method)
    run_to(store, REFUSED, source="other data", file="first settings")
    run_to(store, REFUSED, source="same data", file="third settings")
    run = run_to(store, BEGUN, source="same data", file="third settings")
    (finding,) = findings(store, run)
    assert finding.outcome == "REVIEW"
    assert "(wine-0001)." in finding.why


def test_earlier_refusals_unused_columns_changed_review(store: Store) -> None:
    run_to(store, REFUSED, source="one file", file="first settings", data="same records")
    run = run_to(store, BEGUN, source="another file", file="new settings", data="same records")
    (finding,) = findings(store, run)
    assert finding.outcome == "REVIEW"


def test_earlier_refusals_audit_without_verdict_review(store: Store) -> None:
    """Its scores could be read already."""
    run_to(store, REFUSED[:-1], source="same data", file="first settings")
    run = run_to(store, BEGUN, source="same data", file="second settings")
    (finding,) = findings(store, run)
    assert finding.outcome == "REVIEW"


def test_earlier_refusals_other_code_review(store: Store) -> None:
    run_to(store, REFUSED, source="same data", file="first settings")
    run = run_to(store, BEGUN, source="same data", file="first settings")
    assert findings(store, run) == ()
    (finding,) = findings(store, replace(run, code_version="d"))
    assert finding.outcome == "REVIEW"


def test_earlier_refusals_first_run_no_finding(store: Store) -> None:
    run = run_to(store, BEGUN, source="same data", file="first settings")
    assert findings(store, run) == ()


@pytest.mark.parametrize(
    ("outcome", "end", "is_told"),
    [
        ("REVIEW", "abandoned", True),  # no decision, and the author tries other settings
        ("REVIEW", "published", False),  # people approved it
        ("PASS", "abandoned", False),
        ("PASS", "refused", True),  # by the checks before publishing
    ],
)
def test_earlier_refusals_after_other_endings(
    store: Store, outcome: str, end: str, is_told: bool
) -> None:
    first = run_to(store, REFUSED[:-1], source="same data", file="first settings")
    values = [first.release_id, outcome, "d", "p", "c", "[]", now()]
    with store.transaction() as db:
        db.execute("insert into audit.verdict values (?, ?, ?, ?, ?, ?, ?, null)", values)
    for stage in ("awaiting_review" if outcome == "REVIEW" else "approved", end):
        with store.advance(first, Stage(stage)):
            pass
    run = run_to(store, BEGUN, source="same data", file="second settings")
    assert bool(findings(store, run)) == is_told


@pytest.mark.parametrize(
    ("file", "code", "outcome"),
    [("same", "c", "FAIL"), ("other", "c", "REVIEW"), ("same", "d", "REVIEW")],
)
def test_earlier_refusals_rejected_release_fail_or_review(
    store: Store, file: str, code: str, outcome: str
) -> None:
    first = run_to(store, REFUSED, source="same data", file="same")
    decision = [first.release_id, "reject", 1, "bob", None, "No.", "d", "p", "c", now()]
    with store.transaction() as db:
        marks = ", ".join("?" for _ in decision)
        db.execute(f"insert into audit.decision values ({marks}, null)", decision)
    run = replace(run_to(store, BEGUN, source="same data", file=file), code_version=code)
    (finding,) = findings(store, run)
    assert finding.outcome == outcome
    assert "wine-0001" in finding.why


@pytest.mark.parametrize("outcome", ["REVIEW", "FAIL"])
def test_reach_verdict_earlier_refusal_no_pass(
    outcome: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = Verdict("PASS", (Finding("a", "PASS", "Fine."),), "p", "d", "c")
    refusal = Finding(EARLIER_REFUSALS, outcome, "It did not pass before.")
    monkeypatch.setattr(tasks.judge.task, "decide", lambda *given, **named: passed)
    monkeypatch.setattr(tasks.judge.task, "judge_earlier_refusals", lambda *given: (refusal,))
    verdict = reach_verdict(*[MagicMock() for _ in signature(reach_verdict).parameters])
    assert (verdict.outcome, verdict.findings[-1]) == (outcome, refusal)
