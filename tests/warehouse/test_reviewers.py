"""Reviewers' keys of a home: who may enrol whom, and which keys count as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppdm_core.model.errors import BadInput
from tests.support.contexts import create_home
from tests.support.sealed_home import begin, columns, damaged, trouble
from tests.support.signed_homes import KEYS, get_public, reseal
from warehouse.database import Store
from warehouse.reviewers import (
    Reviewers,
    add_reviewer,
    read_reviewers,
    remove_reviewer,
)
from warehouse.tables import REVIEWERS

TREE = (("first", None), ("sam", "first"), ("rita", "first"), ("puppet", "sam"), ("late", "puppet"))


def enrol(store: Store, name: str, by: str | None, key: str | None = None) -> None:
    with store.transaction("tests") as db:
        add_reviewer(db, name, get_public(key or name), None if by is None else KEYS[by])


def read(store: Store) -> Reviewers:
    with store.transaction("tests") as db:
        return read_reviewers(db)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(create_home(tmp_path / "home"))


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A home with keys; tests roll back what they do to it."""
    store = Store(create_home(tmp_path_factory.mktemp("team") / "home"))
    for name, by in TREE:
        enrol(store, name, by)
    return store


def test_find_holder_keys_enrolled_by_others_than_first_belong_to_enroller(team: Store) -> None:
    found = read(team)
    names = {key: each.name for key, each in found.keys.items()}
    holders = {each.name: names[found.find_holder(key)] for key, each in found.keys.items()}
    assert holders == {
        "first": "first", "sam": "sam", "rita": "rita", "puppet": "sam", "late": "sam"
    }  # fmt: skip


BAD = {
    "not signed": ("raj", None, "raj", "only one of them can change that"),
    "by a stranger": ("raj", "stranger", "raj", "is not enrolled in this home"),
    "an enrolled key": ("sam2", "first", "sam", "is enrolled already, as that of sam"),
    "a name in use": ("SAM", "first", "raj", "There is a reviewer 'SAM' already"),
    "no name": ("", "first", "raj", "'' cannot be a reviewer's name"),
    "a name of a path": ("../x", "first", "raj", "cannot be a reviewer's name"),
    "a name of other letters": ("s\u0430m", "first", "raj", "cannot be a reviewer's name"),
}


@pytest.mark.parametrize("what", BAD)
def test_add_reviewer_bad_input(team: Store, what: str) -> None:
    name, by, key, sentence = BAD[what]
    with pytest.raises(BadInput, match=sentence):
        enrol(team, name, by, key)
    assert len(read(team).keys) == len(TREE)


def test_add_reviewer_first_key_after_release_bad_input(store: Store) -> None:
    begin(store)
    with pytest.raises(BadInput, match="This home has releases that no key signed"):
        enrol(store, "first", None)
    assert not read(store)


def test_remove_reviewer_last_key_stays_removed_key_never_returns(store: Store) -> None:
    for name, by in TREE[:2]:
        enrol(store, name, by)
    with store.transaction("tests") as db:
        remove_reviewer(db, "first", KEYS["sam"])
    for name, by, sentence in (
        ("sam", "sam", "is the last one, and a home with keys keeps one"),
        ("rita", "sam", "There is no reviewer 'rita'"),
        ("first", "sam", "There is no reviewer 'first'"),
    ):
        with store.transaction("tests") as db, pytest.raises(BadInput, match=sentence):
            remove_reviewer(db, name, KEYS[by])
    for by, key, sentence in (
        ("sam", "first", "was removed from this home, as that of first"),
        ("first", "rita", "was removed from this home"),  # a removed key enrols no other
    ):
        with pytest.raises(BadInput, match=sentence):
            enrol(store, "again", by, key)
    assert [each.name for each in read(store).enrolled] == ["sam"]
    with store.transaction("tests") as db:
        assert trouble(db) == ""


CHANGED = {"VARCHAR": "'x' || coalesce({0}, '')"}


def test_check_history_any_edited_field_of_reviewer_refused(team: Store) -> None:
    with damaged(team) as db:
        for name, kind in columns(db, REVIEWERS).items():
            values = [CHANGED.get(kind, "{0} + interval 1 microsecond").format(name)]
            values += ["null"] if name in ("signer", "signature", "mac") else []
            ((original,),) = db.execute(
                f"select {name} from {REVIEWERS} where name = 'rita'"
            ).fetchall()
            place = "rowid = 2"
            for value in values:
                db.execute(f"update {REVIEWERS} set {name} = {value} where {place}")
                assert trouble(db), f"{name} = {value}"
            db.execute(f"update {REVIEWERS} set {name} = ? where {place}", [original])
        assert trouble(db) == ""


def test_check_history_removal_undone_with_key_of_home_refused(store: Store) -> None:
    """The row of the enrolment is stored once more after the removal, and sealed."""
    for name, by in TREE[:3]:
        enrol(store, name, by)
    with store.transaction("tests") as db:
        remove_reviewer(db, "rita", KEYS["first"])
    assert "rita" not in [each.name for each in read(store).enrolled]
    names = "action, name, public, previous, signer, signature"
    last = f"(select max(happened) from {REVIEWERS})"
    copy = (
        f"insert into {REVIEWERS} select {names}, {last}, 'copy' from {REVIEWERS} where rowid = 2"
    )
    named = 'update meta.event set detail = \'{"sealed": ["copy"]}\' where number = 4'
    for statements in ((copy, f"delete from {REVIEWERS} where rowid = 3", named), (copy,)):
        with damaged(store, *statements) as db:
            reseal(db)
            assert trouble(db)
