from __future__ import annotations

import json
import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tasks.judge.decision
import warehouse.approvals
import warehouse.process_user
from ppdm.cli.outcome import read_outcome
from ppdm.cli.release_reply import build_release
from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError, Refused, Undecided
from ppdm_core.model.verdict import Review
from tasks.release_summary import read_summary
from tests.support.contexts import open_run
from tests.support.waiting_runs import ANN, BOB, CAT, OWNER, Office, staffed
from warehouse.approvals import Person, current_user, is_author, read_authors
from warehouse.audit_results import find_verdict
from warehouse.database import get_run
from warehouse.publishing.publish import check_approved
from warehouse.stages import Stage


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("office")
    with staffed(Office(folder, Review(approvals=2))) as made:
        made.waiting()
    return folder


@pytest.fixture
def office(template: Path, tmp_path: Path) -> Iterator[Office]:
    """Ann made a release, and two of her colleagues must approve it within 14 days."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    with staffed(Office(tmp_path, Review(approvals=2))) as copy:
        yield copy


def test_current_user_name_from_system() -> None:
    user = current_user()
    assert (user.uid, user.name) == (os.getuid(), pwd.getpwuid(os.getuid()).pw_name)


def test_current_user_without_name_uses_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse.approvals, "read_process_uid", lambda: 3_999_999)
    assert current_user() == Person(3_999_999, "uid-3999999")


def test_current_user_faked_libc_id_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999)
    monkeypatch.setattr(os, "geteuid", lambda: 3_999_999)
    assert current_user().uid == real


@contextmanager
def hidden_user() -> Iterator[None]:
    """Act as a process in a user namespace, where nobody knows who it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warehouse.approvals, "current_user", current_user)
        patch.setattr(warehouse.process_user, "read_kernel_file", lambda path: "12345 0 1\n")
        yield


def test_approve_by_hidden_user_refused(office: Office) -> None:
    with hidden_user(), pytest.raises(Refused, match="a user namespace hides the real user"):
        office.decide(BOB)
    assert office.standing().counted == ()
    with hidden_user():
        office.decide(BOB, "reject")  # that is always possible
    assert office.stage() == "refused"


def test_approve_release_of_hidden_author_refused(tmp_path: Path) -> None:
    with staffed(Office(tmp_path)) as office:
        with hidden_user():
            office.waiting()
        with pytest.raises(Refused, match="Nobody can approve t-0001: a user namespace hid"):
            office.decide(BOB)
        assert office.standing().missing == 1
        with office.store.transaction() as db:  # a decision that was recorded counts no more
            authors = read_authors(db, "t-0001")
        assert all(is_author(person, authors) for person in (ANN, BOB, CAT))


def test_approve_release_continued_by_hidden_user_refused(tmp_path: Path) -> None:
    with staffed(Office(tmp_path)) as office:
        run = office.begin()
        with hidden_user():
            office.begin()
        office.walk(run, "raw", "validated", "sanitized", "audited")
        office.judge(run, "REVIEW")
        with pytest.raises(Refused, match="Nobody can approve t-0001"):
            office.decide(BOB)


def test_record_decision_two_approvals_both_count(office: Office) -> None:
    office.decide(BOB)
    assert office.standing().missing == 1
    office.later(hours=1)
    office.decide(BOB)  # the same person once more
    assert office.standing().missing == 1
    office.decide(CAT)
    assert [one.person for one in office.standing().counted] == [BOB, CAT]
    assert office.standing().missing == 0
    assert office.stage() == "awaiting_review"  # only publishing ends that


@pytest.mark.parametrize(
    "person",
    [ANN, Person(ANN.uid, "another name"), Person(7, "ANN"), Person(7, OWNER.lower())],
    ids=["author", "her uid", "her name", "owner of the file"],
)
def test_approve_by_author_refused(office: Office, person: Person) -> None:
    with pytest.raises(Refused, match="an author cannot approve a release"):
        office.decide(person)
    assert office.standing().missing == 2


def test_approve_by_continuing_user_refused(tmp_path: Path) -> None:
    with staffed(Office(tmp_path)) as office:
        run = office.begin()
        office.walk(run, "raw", "validated")
        office.person = BOB
        assert office.begin().release_id == run.release_id
        office.walk(run, "sanitized", "audited")
        office.judge(run, "REVIEW")
        office.person = CAT
        office.begin()  # a tick that finds it waiting
        with pytest.raises(Refused, match="bob made"):
            office.decide(BOB)
        office.decide(CAT)
        assert office.standing().missing == 0


def test_reject_awaiting_release_refused(office: Office) -> None:
    office.decide(BOB)
    office.decide(ANN, "reject", "I withdraw it.")
    assert office.stage() == "refused"
    assert office.standing().counted == ()
    with pytest.raises(BadInput, match="does not wait for a decision: it is 'refused'"):
        office.decide(CAT)
    summary = read_summary(office.store, "t-0001")
    assert [finding.why for finding in summary.refusals] == ["ann rejected it."]


def test_count_approvals_after_limit_lapsed(office: Office) -> None:
    office.decide(BOB)
    office.later(days=14)
    office.decide(CAT)
    assert office.standing().missing == 0
    office.later(seconds=1)
    assert [one.person for one in office.standing().counted] == [CAT]
    office.decide(BOB, note="I looked again.")
    assert office.standing().missing == 0


def test_summary_published_release_shows_counted_approvals_only(office: Office) -> None:
    dan = Person(1004, "dan")
    for person, days in ((BOB, 15), (CAT, 0), (dan, 0)):
        office.decide(person)
        office.later(days=days)
    waiting = read_summary(office.store, "t-0001").approvals
    publish_now(office)
    published = read_summary(office.store, "t-0001")
    assert [one["by"] for one in published.approvals or ()] == ["cat", "dan"]
    assert published.approvals == waiting
    assert len(published.decisions) == 3 and published.standing is None
    office.later(days=100)  # what lapses later did count
    assert read_summary(office.store, "t-0001").approvals == waiting


def publish_now(office: Office) -> None:
    """Record a version as publishing does, without any file."""
    run = open_run(office.context, "t-0001")[1]
    with office.store.advance(run, Stage.PUBLISHED, data="d", manifest="m") as change:
        change.db.execute(
            "insert into published.version values ('t', 1, 't-0001', 'd', 'm', ?)", [office.time]
        )


def test_summary_rejected_release_no_approvals(office: Office) -> None:
    office.decide(BOB)
    office.decide(CAT, "reject")
    assert read_summary(office.store, "t-0001").approvals is None


def test_count_approvals_clock_moved_back_stays_lapsed(office: Office) -> None:
    office.decide(BOB)
    office.later(days=15)
    office.decide(CAT)  # at this time Bob's has lapsed, and the history knows what time it was
    office.later(days=-14)
    with pytest.raises(MachineTrouble, match="The clock of this machine"):
        office.standing()
    with pytest.raises(MachineTrouble, match="The clock of this machine"):
        office.decide(BOB)
    office.later(days=14)
    assert office.standing().missing == 1


@pytest.mark.parametrize("what", ["code", "source", "file", "no source"])
def test_approve_changed_release_refused(
    office: Office, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "code":
        monkeypatch.setattr(tasks.judge.decision, "compute_code_version", lambda: "d" * 16)
    elif what == "source":
        office.table.write_text("a,b\n1,3\n")
    elif what == "no source":
        office.table.unlink()
    else:
        with office.store.transaction() as db:
            db.execute("update meta.run set file_digest = 'g'")
    with pytest.raises(PpdmError) as caught:
        office.decide(BOB)
    assert caught.value.exit_code == (2 if what == "no source" else 3)
    assert office.standing().counted == ()
    office.decide(BOB, "reject")  # that is always possible
    assert office.stage() == "refused"


def test_count_approvals_other_verdict_not_counted(office: Office) -> None:
    office.decide(BOB)
    office.decide(CAT)
    with office.store.transaction() as db:
        verdict = find_verdict(db, "t-0001")
        assert verdict is not None
        run = SimpleNamespace(release_id="t-0001")
        request: Any = SimpleNamespace(run=run, review=office.review)
        check_approved(db, verdict, request)
        for field in ("data_digest", "policy_digest", "code_version"):
            other = replace(verdict, **{field: "0" * 64})
            with pytest.raises(Undecided, match="2 of 2 approvals are missing"):
                check_approved(db, other, request)


@pytest.mark.parametrize("note", ["", "   ", "two\nlines", "a" * 1001, "\x1b[2J"])
def test_record_decision_bad_note_bad_input(office: Office, note: str) -> None:
    with pytest.raises(BadInput, match="--note takes one line"):
        office.decide(BOB, note=note)
    assert office.standing().counted == ()


def test_record_decision_note_stays_in_warehouse(office: Office) -> None:
    office.decide(BOB, note="No patient is found.")
    with office.store.transaction() as db:
        events = db.execute("select detail from meta.event where kind = 'decision'").fetchall()
    ((detail,),) = events
    event = json.loads(detail)
    assert (event["choice"], event["by"]) == ("approve", "bob")
    assert "patient" not in detail
    summary = read_summary(office.store, "t-0001")
    with office.store.transaction() as db:
        reply = build_release(read_outcome(db, get_run(db, "t-0001")))
    assert "patient" not in reply.model_dump_json() + summary.format_outcome_sentence()
    assert summary.decisions[0].note == "No patient is found."


EDITS = {
    "another person": "update audit.decision set uid = 1003, name = 'cat'",
    "another choice": "update audit.decision set choice = 'reject'",
    "another note": "update audit.decision set note = 'x'",
    "another day": "update audit.decision set happened = happened + interval 1 day",
    "another release": "update audit.decision set release_id = 't-0002'",
    "other data": "update audit.decision set data_digest = 'e'",
    "another policy": "update audit.decision set policy_digest = 'e'",
    "other code": "update audit.decision set code_version = 'e'",
    "there twice": "insert into audit.decision select * from audit.decision",
    "deleted": "delete from audit.decision",
    "another author": "update meta.author set uid = 1, name = 'nobody'",
    "no author": "delete from meta.author",
    "fewer approvals": """update audit.waiting set file = replace(file::varchar, '"approvals": 2',
        '"approvals": 1')""",
}


@pytest.mark.extended
@pytest.mark.parametrize("what", EDITS)
def test_check_approved_edited_row_refused(office: Office, what: str) -> None:
    from warehouse.integrity.history import check_history

    office.decide(BOB)
    with office.store.transaction() as db:
        check_history(db)  # the control
        db.execute(EDITS[what])
    with office.store.transaction() as db, pytest.raises(Refused):
        check_history(db)


def test_count_approvals_without_authors_none(office: Office) -> None:
    office.decide(BOB)
    office.decide(CAT)
    with office.store.transaction() as db:
        db.execute("delete from meta.author")
    assert office.standing().missing == 2
