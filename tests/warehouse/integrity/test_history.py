from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import MachineTrouble, Refused
from ppdm_core.model.manifest import NAME
from tests.support.sealed_home import (
    OTHERS,
    begin,
    check,
    damaged,
    edit,
    new_store,
    trouble,
)
from warehouse.checkpoints import LISTENERS
from warehouse.database import Store
from warehouse.integrity.events import append_event


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return new_store(tmp_path / "home")


FIELDS = "(number, happened, dataset, release_id, kind, detail, mac)"
DAMAGES = {
    "deleted middle": ["delete from meta.event where number = 3"],
    "deleted first": ["delete from meta.event where number = 1"],
    "deleted last": ["delete from meta.event where number = 6"],
    "deleted tail": ["delete from meta.event where number > 3"],
    "deleted all": ["delete from meta.event"],
    "deleted and renumbered": [
        "delete from meta.event where number = 3",
        "update meta.event set number = number - 1 where number > 3",
    ],
    "swapped": ["update meta.event set number = 7 - number where number in (3, 4)"],
    "repeated": ["insert into meta.event select * from meta.event where number = 2"],
    "repeated as the last": [
        f"insert into meta.event {FIELDS} select 7, happened, dataset, release_id, kind, detail, "
        "mac from meta.event where number = 6"
    ],
    "added without a seal": [
        f"insert into meta.event {FIELDS} select 7, happened, dataset, release_id, kind, detail, "
        "null from meta.event where number = 6"
    ],
    "seals removed": ["update meta.event set mac = null", "update audit.verdict set mac = null"],
    "a verdict deleted": ["delete from audit.verdict"],
    "a verdict repeated": ["insert into audit.verdict select * from audit.verdict"],
    "a verdict added": [
        "insert into audit.verdict select * replace ('PASS' as outcome, null as mac) "
        "from audit.verdict"
    ],
    "a verdict of another release": ["update audit.verdict set release_id = 'wine-0002'"],
    "a decision repeated": ["insert into audit.decision select * from audit.decision"],
    "a stage": ["update meta.run set stage = 'approved'"],
    "a run deleted": ["delete from meta.run"],
    "a run of other data": ["update meta.run set source_digest = 'other'"],
    "a run of another file": ["update meta.run set file_digest = 'other'"],
    "a run of another dataset": ["update meta.run set dataset = 'beer'"],
    "a version": ["insert into published.version values ('wine', 1, 'wine-0001', 'd', 'm', now())"],
    "the column of seals dropped": ["alter table audit.verdict drop column mac"],
}


@pytest.mark.extended
@pytest.mark.parametrize("what", DAMAGES)
def test_check_history_damaged_refused_also_after_new_event(template: Store, what: str) -> None:
    with damaged(template, *DAMAGES[what]) as db:
        assert trouble(db)
        append_event(db, "wine", "", "note", {})  # life goes on, and covers nothing up
        assert trouble(db)


def test_check_history_two_damaged_events_first_named(template: Store) -> None:
    with damaged(template, "update meta.event set kind = 'x' where number in (3, 5)") as db:
        assert trouble(db).startswith("Event 3 (wine-0001, x) was changed")


def test_check_history_row_moved_to_other_table_refused(template: Store) -> None:
    copied = "create table audit.twin as select * from audit.verdict"
    with damaged(template, copied, "delete from audit.verdict") as db:
        assert trouble(db).startswith("Row 1 of audit.twin (wine-0001) was changed")


HEADS: dict[str, Callable[[Path], Any]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_text(""),
    "no object": lambda path: path.write_text("[1]"),
    "set back": lambda path: path.write_text(path.read_text().replace(": 6,", ": 3,")),
    "of no event": lambda path: path.write_text('{"number": 0, "mac": "", "seal": ""}'),
}


@pytest.mark.extended
@pytest.mark.parametrize("what", HEADS)
def test_check_history_forged_head_refused(judged: Store, what: str) -> None:
    HEADS[what](judged.home.head)
    with pytest.raises(Refused, match=r"history\.head"):
        check(judged)
    with judged.transaction() as db:
        append_event(db, "wine", "", "note", {})
    with pytest.raises(Refused, match=r"history\.head"):
        check(judged)


def test_check_history_cut_tail_refused(judged: Store) -> None:
    """Cut so that all that is left fits together."""
    edit(judged, "delete from meta.event where number = 6")
    edit(
        judged,
        *(
            f"delete from {table}"
            for table in ("audit.verdict", "audit.sketch", "ledger.entry", *OTHERS)
        ),
    )
    edit(judged, "update meta.run set stage = 'audited'")
    with pytest.raises(Refused, match="once had an event 6"):
        check(judged)
    with judged.transaction() as db:
        append_event(db, "wine", "", "note", {})  # another event 6
    with pytest.raises(Refused, match="once had an event 6"):
        check(judged)


def test_check_history_restored_old_home_refused_if_published_since(judged: Store) -> None:
    """And only by that: a whole private folder of yesterday is whole."""
    saved = judged.home.root / "saved"
    shutil.copytree(judged.home.private, saved)
    begin(judged, "beer")
    shutil.rmtree(judged.home.private)
    saved.rename(judged.home.private)
    check(judged)
    folder = judged.home.published / "beer" / "0001"
    folder.mkdir(parents=True)
    (folder / NAME).write_text("{}")
    with pytest.raises(Refused, match="beer-0001 is published"):
        check(judged)


def test_check_history_crash_before_head_passes(store: Store) -> None:
    class Struck(BaseException):
        pass

    def strike(name: str) -> None:
        if name == "events committed":
            raise Struck

    LISTENERS.append(strike)
    try:
        with pytest.raises(Struck):
            begin(store)
    finally:
        LISTENERS.remove(strike)
    assert json.loads(store.home.head.read_text())["number"] == 0
    check(store)
    begin(store)
    assert json.loads(store.home.head.read_text())["number"] == 2
    check(store)


def test_transaction_full_disk_after_commit_step_remains(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(store)

    def fail(*given: object) -> None:
        raise MachineTrouble("The disk is full.")

    monkeypatch.setattr("warehouse.integrity.events.write_head", fail)
    begin(store, "beer")
    monkeypatch.undo()
    assert json.loads(store.home.head.read_text())["number"] == 1
    check(store)
