"""Decisions, authors and reviewers that a person with the key of the home altered and sealed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.verdict import Review
from tests.support.sealed_home import damaged, trouble
from tests.support.signed_homes import SignedOffice, get_public, reseal
from tests.support.waiting_runs import staffed
from warehouse.approvals import read_authors, read_decisions
from warehouse.audit_results import find_verdict
from warehouse.reviewers import Reviewers, read_reviewers
from warehouse.signatures import is_qualified

FORGERIES: dict[str, str | tuple[str, ...]] = {
    "another choice": "update audit.decision set choice = 'reject'",
    "another name": "update audit.decision set name = 'raj'",
    "another shown name": "update audit.decision set shown = 'Dr. Raj'",
    "another note": "update audit.decision set note = 'Fine.'",
    "other data": "update audit.decision set data_digest = 'e'",
    "another policy": "update audit.decision set policy_digest = 'e'",
    "other code": "update audit.decision set code_version = 'e'",
    "another verdict": "update audit.decision set verdict_digest = 'e'",
    "another salt": "update audit.decision set salt = 'e'",
    "another time": "update audit.decision set happened = happened + interval 1 microsecond",
    "another release": "update audit.decision set release_id = 't-0002'",
    "another key": f"update audit.decision set public = '{get_public('raj')}'",
    "another signature": "update audit.decision set signature = repeat('0', 128)",
    "no signature": "update audit.decision set public = null, signature = null, salt = null, "
    "verdict_digest = null",
    "another author": "update meta.author set name = 'raj' where uid is not null",
    "another author's key": f"update meta.author set public = '{get_public('raj')}' "
    "where uid is not null",
    "another author's signature": "update meta.author set signature = repeat('0', 128) "
    "where uid is not null",
    "an author without a key": "update meta.author set public = null, signature = null",
    "another time of the author": "update meta.author set happened = "
    "happened + interval 1 microsecond where uid is not null",
    "another source of the run": (
        "update meta.event set detail = replace(detail::varchar, "
        "(select source_digest from meta.run), 'e') where kind = 'created'",
        "update meta.run set source_digest = 'e'",
    ),
    "another name of a reviewer": "update meta.reviewer set name = 'x' where name = 'rita'",
    "another key of a reviewer": f"update meta.reviewer set public = '{get_public('stranger')}' "
    "where name = 'rita'",
    "a reviewer of another time": "update meta.reviewer set happened = "
    "happened - interval 1 hour where name = 'late'",
    "a reviewer without a signature": "update meta.reviewer set signer = null, signature = null",
    "a reviewer enrolled by another": f"update meta.reviewer set signer = '{get_public('rita')}' "
    "where name = 'raj'",
    "a reviewer left out": "delete from meta.reviewer where name = 'puppet'",
    "all reviewers left out": "delete from meta.reviewer",
    "an action": "update meta.reviewer set action = 'remove' where name = 'late'",
}


@pytest.fixture(scope="module")
def decided(signed_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedOffice]:
    """The same with the approval of Rita; tests roll back what they do to it."""
    folder = tmp_path_factory.mktemp("decided")
    shutil.copytree(signed_home, folder, dirs_exist_ok=True)
    made = SignedOffice(folder, Review(approvals=2))
    made.later(hours=1)
    with staffed(made):
        made.sign("rita")
        yield made


# The other fields of a decision are altered in tests that take longer.
LONG = ("choice", "name", "shown name", "policy", "verdict", "salt", "time", "release", "key")


@pytest.mark.extended
@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=pytest.mark.slow if what in [f"another {x}" for x in LONG] else ())
        for what in FORGERIES
    ],
)
def test_check_history_forged_with_key_of_home_refused(decided: SignedOffice, what: str) -> None:
    """A person with the home's key seals what he changed; the signatures still show it."""
    statements = FORGERIES[what]
    with damaged(
        decided.store, *([statements] if isinstance(statements, str) else statements)
    ) as db:
        reseal(db)
        assert "sign" in trouble(db), trouble(db)


def test_is_qualified_each_condition_missing_false(decided: SignedOffice) -> None:
    with decided.store.transaction() as db:
        (decision,) = read_decisions(db, "t-0001")
        verdict, reviewers = find_verdict(db, "t-0001"), read_reviewers(db)
        began = read_authors(db, "t-0001")[0].happened
    signed = decision.signed
    assert signed is not None and verdict is not None
    key = signed.signature.key
    rita, at = reviewers.keys[key], decided.time
    assert is_qualified(signed, verdict, reviewers, began, at)

    def judge(signed: Any = signed, verdict: Any = verdict, **changes: Any) -> bool:
        keys = {**reviewers.keys, key: replace(rita, **changes)}
        return is_qualified(signed, verdict, replace(reviewers, keys=keys), began, at)

    assert judge()
    assert not judge(signed=None)
    forged = replace(signed.signature, ed25519="0" * 128)
    assert not judge(signed=replace(signed, signature=forged))
    assert not judge(verdict=replace(verdict, findings=()))
    assert not judge(name="raj")
    assert not judge(added=began)
    assert not judge(removed=at)
    assert not is_qualified(signed, verdict, Reviewers({}), began, at)


def test_check_history_resealed_unchanged_passes(decided: SignedOffice) -> None:
    """The control of the forgeries: sealing again alone is not noticed."""
    with damaged(decided.store) as db:
        reseal(db)
        assert trouble(db) == ""


@pytest.mark.extended
def test_check_history_signature_of_other_home_refused(
    decided: SignedOffice, tmp_path: Path
) -> None:
    """Rita approved a release of the same name and content in another home."""
    other = SignedOffice(tmp_path / "other", Review(approvals=2))
    with staffed(other):
        other.enrol_team()
        other.waiting()
        other.sign("rita")
        with other.store.transaction() as db:
            columns = "happened, salt, signature, verdict_digest, policy_digest"
            (row,) = db.execute(f"select {columns} from audit.decision").fetchall()
    with damaged(decided.store) as db:
        names = columns.split(", ")
        values = ", ".join(f"{name} = ?" for name in names)
        db.execute(f"update audit.decision set {values}", list(row))
        reseal(db)
        assert "is not signed" in trouble(db)
