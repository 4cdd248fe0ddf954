"""A REVIEW of the pool at a site: who decides, what is stored, and what the site then sends."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput, Refused, Undecided
from ppdm_core.model.verdict import Finding, Outcome, Review, Verdict
from tasks.context import ReleaseContext
from tasks.sites.exchange import StillWaiting
from tasks.sites.pool_audit import sign_verdict
from tasks.sites.pool_review import (
    collect_approvals,
    find_open_pool,
    record_pool_decision,
    store_pool_facts,
)
from tests.support.common_release import CommonRelease
from warehouse import approvals
from warehouse.approvals import Person
from warehouse.database import get_run
from warehouse.integrity.history import check_history
from warehouse.messages.membership import belongs_to_common_release
from warehouse.messages.payloads import SiteRows
from warehouse.messages.roll import CENTRE
from warehouse.stage_facts import PoolFacts

POOL = "f" * 64
NOTE = "I looked."


def make_facts(context: ReleaseContext, release_id: str, outcome: Outcome) -> PoolFacts:
    with context.open_store().transaction("tests") as db:
        code = get_run(db, release_id).code_version
    finding = Finding("record_linkage.rate", outcome, "It may find too many.")
    verdict = Verdict(outcome, (finding,), context.policy.digest, POOL, code)
    reached = datetime.now(UTC).isoformat()
    return PoolFacts(verdict, ({"name": "record_linkage.rate", "value": 0.1},), (0.2,), (), reached)


class Waiting:
    """A site whose attacks on the pool ended, by default, as REVIEW."""

    def __init__(self, folder: Path, outcome: Outcome = "REVIEW", review: Review | None = None):
        self.release = CommonRelease(folder / "x")
        if review is not None:
            context = self.release.contexts["east"]
            file = {**json.loads(context.file), "review": asdict(review)}
            policy = replace(context.policy, review=review)
            self.release.change("east", policy=policy, file=json.dumps(file))
        for name in (CENTRE, *self.release.sites, CENTRE):
            with suppress(StillWaiting):
                self.release.enter(name)
        self.context, self.release_id, self.exchange = self.release.draw_part("east")
        self.facts = make_facts(self.context, self.release_id, outcome)
        store_pool_facts(self.context, self.release_id, self.facts)

    def decide(self, choice: Any) -> Any:
        return record_pool_decision(self.context, self.release_id, choice, NOTE)

    def collect(self) -> int:
        return collect_approvals(self.context, self.release_id, self.facts)

    def is_open(self) -> bool:
        with self.context.open_store().transaction("tests") as db:
            check_history(db)
            return find_open_pool(db, self.release_id) is not None


@pytest.mark.extended
def test_pool_review_waits_and_names_the_command(tmp_path: Path):
    waiting = Waiting(tmp_path)
    home = waiting.context.open_store().home
    assert belongs_to_common_release(home, "ward", waiting.release_id)
    assert not belongs_to_common_release(home, "ward", "ward-0009")
    with pytest.raises(Undecided, match="ppdm decide ward-0001 --approve") as error:
        waiting.collect()
    assert error.value.exit_code == 4 and "1 of 1 approvals are missing" in error.value.message
    assert waiting.is_open()


@pytest.mark.extended
def test_pool_review_author_cannot_approve(tmp_path: Path):
    waiting = Waiting(tmp_path)
    with pytest.raises(Refused, match="an author cannot approve"):
        waiting.decide("approve")
    assert waiting.is_open()


@pytest.mark.extended
def test_pool_review_approved_by_another_person_is_sent_as_such(tmp_path: Path, monkeypatch: Any):
    waiting = Waiting(tmp_path)
    monkeypatch.setattr(approvals, "current_user", lambda: Person(4321, "rita"))
    assert waiting.decide("approve").missing == 0
    assert waiting.collect() == 1 and not waiting.is_open()
    statement = sign_verdict(waiting.exchange, waiting.facts, SiteRows(outcome="PASS"), 1).statement
    assert (statement["outcome"], statement["approvals"]) == ("REVIEW", 1)
    assert "rita" not in str(statement) and NOTE not in str(statement)


@pytest.mark.extended
def test_pool_review_two_approvals_needed_one_is_not_enough(tmp_path: Path, monkeypatch: Any):
    waiting = Waiting(tmp_path, review=Review(approvals=2))
    monkeypatch.setattr(approvals, "current_user", lambda: Person(4321, "rita"))
    assert waiting.decide("approve").missing == 1
    assert waiting.decide("approve").missing == 1  # a person counts once
    with pytest.raises(Undecided, match="1 of 2 approvals"):
        waiting.collect()
    monkeypatch.setattr(approvals, "current_user", lambda: Person(4322, "sam"))
    assert waiting.decide("approve").missing == 0
    assert waiting.collect() == 2


@pytest.mark.extended
def test_pool_review_rejected_counts_no_approval_and_is_closed(tmp_path: Path):
    waiting = Waiting(tmp_path)
    waiting.decide("reject")  # any person may, also the author
    assert waiting.collect() == 0 and not waiting.is_open()
    with pytest.raises(BadInput, match="does not wait for a decision"):
        waiting.decide("approve")


@pytest.mark.extended
def test_pool_review_too_late_refused(tmp_path: Path, monkeypatch: Any):
    waiting = Waiting(tmp_path, review=Review(decide_within=3600.0))
    monkeypatch.setattr(approvals, "current_user", lambda: Person(4321, "rita"))
    later = datetime.now(UTC) + timedelta(hours=2)
    monkeypatch.setattr("warehouse.integrity.seals.now", lambda: later)
    with pytest.raises(BadInput, match="could be approved until"):
        waiting.decide("approve")


@pytest.mark.extended
@pytest.mark.parametrize("outcome", ["PASS", "FAIL"])
def test_pool_verdict_that_decides_leaves_nothing_to_reviewers(tmp_path: Path, outcome: Outcome):
    waiting = Waiting(tmp_path, outcome)
    assert waiting.collect() == 0 and not waiting.is_open()
    with pytest.raises(BadInput, match="does not wait for a decision"):
        waiting.decide("approve")


@pytest.mark.extended
def test_pool_approval_does_not_change_how_the_own_release_was_approved(
    tmp_path: Path, monkeypatch: Any
):
    """Decisions about the pool carry its digest; those of the own verdict carry another one."""
    waiting = Waiting(tmp_path)
    monkeypatch.setattr(approvals, "current_user", lambda: Person(4321, "rita"))
    waiting.decide("approve")
    own = Verdict("REVIEW", (), waiting.context.policy.digest, "a" * 64, "c")
    with waiting.context.open_store().transaction("tests") as db:
        standing = approvals.count_approvals(db, waiting.release_id, own, Review())
    assert standing.missing == 1
