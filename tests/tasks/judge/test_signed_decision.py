"""Decisions with keys: which approvals count, and what a person with the key of the home can do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tasks.judge.decision
from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.manifest import canonical_json
from ppdm_core.model.statement import DECISION, Signature, is_signed
from ppdm_core.model.verdict import Review
from tasks.release_summary import read_summary
from tests.support.sealed_home import trouble
from tests.support.signed_homes import (
    KEYS,
    SignedOffice,
    get_public,
)
from tests.support.waiting_runs import ANN, BOB, Office, staffed
from warehouse.approvals import count_approvals, read_decisions
from warehouse.audit_results import find_verdict
from warehouse.integrity.history import check_history
from warehouse.reviewers import add_reviewer


@pytest.fixture
def office(signed_home: Path, tmp_path: Path) -> Iterator[SignedOffice]:
    """Sam made a release, and two reviewers must approve it; all are one system user."""
    shutil.copytree(signed_home, tmp_path, dirs_exist_ok=True)
    made = SignedOffice(tmp_path, Review(approvals=2))
    made.later(hours=1)
    with staffed(made):
        yield made


def test_approve_two_other_keys_of_one_user_both_count(office: SignedOffice) -> None:
    office.sign("rita")
    office.sign("rita", note="Once more.")
    assert office.standing().missing == 1
    office.sign("raj")
    standing = office.standing()
    assert [one.person.name for one in standing.counted] == ["rita", "raj"]
    assert standing.missing == 0
    with office.store.transaction() as db:
        check_history(db)


@pytest.mark.slow
def test_approve_first_key_and_reviewer_count(office: SignedOffice) -> None:
    office.sign("first")
    office.sign("raj")
    assert office.standing().missing == 0


REFUSED_KEYS = {
    "sam": "The key of sam cannot approve t-0001, which the same key signed.",
    "puppet": "The key of puppet cannot approve t-0001, because it counts as a key of its author",
    "late": "The key of late was enrolled after t-0001 began.",
    "stranger": "is not enrolled in this home.",
}


@pytest.mark.parametrize("name", REFUSED_KEYS)
def test_approve_key_that_may_not_bad_input(office: SignedOffice, name: str) -> None:
    with pytest.raises(BadInput, match=REFUSED_KEYS[name]):
        office.sign(name)
    assert office.standing().counted == ()


@pytest.mark.extended
@pytest.mark.parametrize("name", REFUSED_KEYS)
def test_count_approvals_key_that_may_not_recorded_anyway_not_counted(
    office: SignedOffice, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same keys, stored by a program that does not check who approves."""
    person = replace(ANN, name=name, holder="x")
    monkeypatch.setattr(tasks.judge.decision, "find_approver", lambda *given: person)
    office.sign(name)
    assert office.standing().counted == ()
    with office.store.transaction() as db:
        assert bool(trouble(db)) == (name == "stranger")


def test_approve_without_key_bad_input(office: SignedOffice) -> None:
    with pytest.raises(BadInput, match="This home has reviewers' keys, so an approval is signed"):
        office.decide(BOB)
    assert office.standing().counted == ()


def test_count_approvals_unsigned_approval_recorded_anyway_not_counted(
    office: SignedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.judge.decision, "find_approver", lambda *given: BOB)
    office.decide(BOB)
    assert office.standing().counted == ()
    with office.store.transaction() as db, pytest.raises(Refused, match="is not signed"):
        check_history(db)


def test_approve_with_key_in_home_without_keys_bad_input(tmp_path: Path) -> None:
    with staffed(Office(tmp_path)) as office:
        office.waiting()
        with pytest.raises(BadInput, match="No reviewer's key is enrolled in this home"):
            tasks.judge.decision.record_decision(
                office.context, "t-0001", "approve", "x", None, KEYS["rita"]
            )


def test_approve_after_deadline_bad_input_in_time_counts(
    office: SignedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = Review(approvals=2, decide_within=7200.0)
    tried: list[Any] = []
    real = tasks.judge.decision.approve

    def approve(store: Any, run: Any, review: Review, *given: Any) -> None:
        tried.append(review)
        real(store, run, limited, *given)

    monkeypatch.setattr(tasks.judge.decision, "approve", approve)
    office.sign("rita")
    office.later(hours=2)
    with pytest.raises(BadInput, match=r"t-0001 could be approved until 2030-01-01 \d\d:\d\d"):
        office.sign("raj")
    monkeypatch.undo()
    assert tried == [office.review] * 2


def test_count_approvals_after_deadline_not_counted(office: SignedOffice) -> None:
    office.sign("rita")
    office.later(hours=2)
    office.sign("raj")
    with office.store.transaction() as db:
        verdict = find_verdict(db, "t-0001")
        assert verdict is not None
        limited = Review(approvals=2, decide_within=7200.0)
        found = count_approvals(db, "t-0001", verdict, limited)
    assert [one.person.name for one in found.counted] == ["rita"]


def test_count_approvals_key_removed_not_counted(office: SignedOffice) -> None:
    office.sign("rita")
    office.sign("raj")
    office.remove("raj", by="rita")
    assert [one.person.name for one in office.standing().counted] == ["rita"]
    with office.store.transaction() as db:
        check_history(db)  # it was enrolled when it signed


def test_reject_without_or_with_any_key_refused(office: SignedOffice) -> None:
    office.sign("rita")
    office.sign("sam", "reject", "I withdraw it.")
    assert office.stage() == "refused" and office.standing().counted == ()
    summary = read_summary(office.store, "t-0001")
    assert [finding.why for finding in summary.refusals] == ["sam rejected it."]


@pytest.mark.slow
def test_reject_by_user_without_key_refused(office: SignedOffice) -> None:
    office.decide(BOB, "reject")
    assert office.stage() == "refused"
    with office.store.transaction() as db:
        check_history(db)


def test_begin_run_unsigned_in_home_with_keys_bad_input(office: SignedOffice) -> None:
    for author, sentence in (
        (None, "the author of a release signs it"),
        ("first", "The key of first is the first one of this home"),
        ("stranger", "is not enrolled in this home"),
    ):
        with pytest.raises(BadInput, match=sentence):
            office.begin(author)


def test_begin_run_signed_in_home_without_keys_bad_input(tmp_path: Path) -> None:
    with staffed(SignedOffice(tmp_path)) as office, pytest.raises(BadInput, match="is not signed"):
        office.begin("sam")


@pytest.mark.extended
def test_approve_by_second_author_bad_input(tmp_path: Path) -> None:
    made = SignedOffice(tmp_path, Review(approvals=1))
    with staffed(made) as office:
        made.enrol_team()
        run = made.begin("sam")
        office.walk(run, "raw", "validated")
        assert made.begin("rita").release_id == run.release_id  # continues it
        office.walk(run, "sanitized", "audited")
        office.judge(run, "REVIEW")
        with pytest.raises(BadInput, match="The key of rita cannot approve"):
            made.sign("rita")
        made.sign("raj")
        assert office.standing().missing == 0


def test_approve_reviewer_named_as_owner_bad_input(tmp_path: Path) -> None:
    made = SignedOffice(tmp_path, Review(approvals=1))
    with staffed(made):
        made.enrol("first", None)
        made.enrol("sam", "first")
        with made.store.transaction("tests") as db:
            add_reviewer(db, "dora", get_public("rita"), KEYS["first"])
        made.later(seconds=1)
        made.waiting()
        with pytest.raises(BadInput, match="The key of dora cannot approve"):
            made.sign("rita")


def test_statement_independent_formula_verifies(office: SignedOffice) -> None:
    """What is signed, written out."""
    import hashlib

    office.sign("rita", note="I looked.")
    with office.store.transaction() as db:
        (decision,) = read_decisions(db, "t-0001")
        verdict = find_verdict(db, "t-0001")
        ((salt, at),) = db.execute("select salt, happened from audit.decision").fetchall()
    assert decision.signed is not None and verdict is not None
    statement = dict(decision.signed.statement)
    home = statement.pop("home")
    public = bytes.fromhex(get_public("rita"))
    assert statement == {
        "release_id": "t-0001",
        "choice": "approve",
        "data": "d",
        "policy": verdict.policy_digest,
        "code": verdict.code_version,
        "verdict": hashlib.sha256(canonical_json(verdict.as_dict()).encode()).hexdigest(),
        "by": "rita",
        "shown": "",
        "note": hashlib.sha256(f'["{salt}","I looked."]'.encode()).hexdigest(),
        "key": hashlib.sha256(public).hexdigest()[:32],
        "at": at.astimezone(office.time.tzinfo).isoformat(timespec="microseconds"),
    }
    text = b"ppdm decision 1\n" + canonical_json({**statement, "home": home}).encode()
    KEYS["rita"].public_key().verify(bytes.fromhex(decision.signed.signature.ed25519), text)
    signature = Signature(get_public("rita"), decision.signed.signature.ed25519)
    assert not is_signed(b"ppdm author 1\n", decision.signed.statement, signature)
    assert is_signed(DECISION, decision.signed.statement, signature)
