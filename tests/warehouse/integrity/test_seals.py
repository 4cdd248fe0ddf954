from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput, Defect, MachineTrouble, Refused
from tests.support.sealed_home import (
    OTHERS,
    TIME,
    VERDICT,
    begin,
    check,
    columns,
    damaged,
    edit,
    judge,
    new_store,
    trouble,
)
from warehouse.database import Store, get_run
from warehouse.integrity import home_key, seals
from warehouse.integrity.events import append_event
from warehouse.integrity.history import check_history
from warehouse.integrity.seals import (
    insert_sealed,
    list_sealed_tables,
    monotonic_now,
    read_sealed_rows,
)
from warehouse.stage_facts import AuditedFacts, EndingFacts, find_facts, read_facts, store_facts
from warehouse.tables import EVENTS, REVIEWERS


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return new_store(tmp_path / "home")


def test_check_history_untouched_passes(template: Store) -> None:
    with template.transaction() as db:
        found = check_history(db)
        (row,) = read_sealed_rows(db, "audit.verdict")
    assert found.rows == len(TABLES) - 1 + 1  # one in each but the events, and two authors
    assert [event["number"] for event in found.events] == [1, 2, 3, 4, 5, 6]
    assert row == VERDICT


def test_mac_sealed_row_equals_independent_formula(judged: Store) -> None:
    """HMAC over canonical JSON, with a key that is derived from the file."""
    root = bytes.fromhex(home_key.home_key_path(judged.home).read_text())
    key = hashlib.blake2b(key=root, person=b"ppdm seals", digest_size=32).digest()
    fields = {name: ["text", value] for name, value in VERDICT.items() if name != "happened"}
    fields["happened"] = ["time", "2026-01-02T03:04:05.678901+00:00"]
    content = {"previous": "", "row": fields, "table": "audit.verdict"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    with judged.transaction() as db:
        ((mac,),) = db.execute("select mac from audit.verdict").fetchall()
    assert mac == hmac.new(key, text.encode(), "sha256").hexdigest()


CHANGED = {
    "VARCHAR": "'x' || coalesce({0}, '')",
    "JSON": "'{{\"x\": 1}}'",
    "INTEGER": "coalesce({0}, 0) + 1",
    "BIGINT": "coalesce({0}, 0) + 1",
    "DOUBLE": "nextafter({0}, 1.0)",
    "TIMESTAMP WITH TIME ZONE": "{0} + interval 1 microsecond",
}
TABLES = ("audit.verdict", "audit.sketch", "ledger.entry", "meta.author", EVENTS, *OTHERS)
EMPTIED = {
    ("meta.event", "number"): ["null"],
    ("audit.decision", "shown"): ["null", "''"],
    **{(table, "mac"): ["null", "''"] for table in TABLES},
}


def test_list_sealed_tables_equals_tested_tables(template: Store) -> None:
    with template.transaction() as db:
        # tests/warehouse/test_reviewers.py edits the fields of a reviewer's key
        assert list_sealed_tables(db) == sorted((*TABLES, REVIEWERS))


@pytest.mark.parametrize("table", TABLES)
def test_check_history_any_edited_field_refused(template: Store, table: str) -> None:
    """Of the last row of a table, and of an event in the middle; also if it is emptied."""
    last = f"rowid = (select max(rowid) from {table})"
    with damaged(template) as db:
        ((place,),) = db.execute(
            f"select rowid from {table} where {'number = 5' if table == EVENTS else last}"
        ).fetchall()
        for name, kind in columns(db, table).items():
            ((original,),) = db.execute(
                f"select {name} from {table} where rowid = {place}"
            ).fetchall()
            for value in (CHANGED[kind].format(name), *EMPTIED.get((table, name), ())):
                db.execute(f"update {table} set {name} = {value} where rowid = {place}")
                assert trouble(db), f"{name} = {value}"
            db.execute(f"update {table} set {name} = ? where rowid = {place}", [original])
        assert trouble(db) == ""


@pytest.mark.extended
def test_check_history_old_row_replacing_new_refused(judged: Store) -> None:
    judge(judged, begin(judged, "beer"))
    check(judged)
    edit(
        judged,
        "update audit.verdict set mac = (select mac from audit.verdict where release_id = "
        "'wine-0001'), outcome = 'FAIL', release_id = 'wine-0001' where release_id = 'beer-0001'",
    )
    with judged.transaction() as db, pytest.raises(Refused, match="there twice"):
        read_sealed_rows(db, "audit.verdict")
    with pytest.raises(Refused, match="no event names it"):
        check(judged)


def test_check_history_row_without_event_refused(judged: Store) -> None:
    with judged.transaction() as db:
        insert_sealed(db, "audit.verdict", {**VERDICT, "release_id": "wine-0009"})
    with pytest.raises(Refused, match="no event names it"):
        check(judged)


def test_read_facts_edited_refused(template: Store) -> None:
    with damaged(template) as db:
        run = get_run(db, "wine-0001")
        facts = EndingFacts(rejected_by="wine-0000")
        store_facts(db, run, facts)
        assert read_facts(db, "wine-0001", EndingFacts) == facts
        for change in ("value = '{}'", "kind = 'audited'", "seal = null", "seal = ''"):
            original = db.execute("select * from meta.fact").fetchall()[0]
            db.execute(f"update meta.fact set {change}")
            with pytest.raises(Refused, match="were changed afterwards"):
                read_facts(db, "wine-0001", AuditedFacts if "kind" in change else EndingFacts)
            db.execute("delete from meta.fact")
            db.execute("insert into meta.fact values (?, ?, ?, ?)", original)
        db.execute("insert into meta.fact values ('wine-0001', 'ending', '{}', null)")
        with pytest.raises(Refused, match="were changed afterwards"):
            read_facts(db, "wine-0001", EndingFacts)
        assert find_facts(db, "wine-0002", EndingFacts) is None
        with pytest.raises(Refused, match="facts of wine-0002 \\(ending\\) are missing"):
            read_facts(db, "wine-0002", EndingFacts)


def test_mac_of_values_of_other_types_differ() -> None:
    key = home_key.HomeKey(bytes(32))
    values: list[Any] = [1, 1.0, "1", True, None, "None", float("inf"), "inf", TIME, str(TIME)]
    macs = {seals.mac_of(key, "t", {"x": value}) for value in values}
    assert len(macs) == len(values)
    pairs = [{"a": "b", "c": ""}, {"a": "bc"}, {"ab": "", "c": ""}, {"a": "b"}]
    assert len({seals.mac_of(key, "t", pair) for pair in pairs}) == len(pairs)
    with pytest.raises(Defect, match="cannot hold a bytes"):
        seals.mac_of(key, "t", {"x": b"1"})


def test_insert_sealed_value_changed_by_column_refused(store: Store) -> None:
    edit(store, "create table meta.odd (x double, mac varchar)")
    with store.transaction() as db:
        insert_sealed(db, "meta.odd", {"x": 0.1})
        insert_sealed(db, "meta.odd", {"x": float("inf")})
        with pytest.raises(Refused):
            insert_sealed(db, "meta.odd", {"x": 1})


def test_home_key_second_run_same_key_owner_only(judged: Store) -> None:
    path = home_key.home_key_path(judged.home)
    content = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert judged.home.head.stat().st_mode & 0o777 == 0o600
    judge(judged, begin(judged, "beer"))
    assert path.read_text() == content
    assert content.strip() not in repr(home_key.HomeKey(bytes.fromhex(content)))


@pytest.mark.parametrize("what", ["missing", "replaced", "damaged"])
def test_home_key_missing_or_replaced_bad_input(judged: Store, what: str) -> None:
    path = home_key.home_key_path(judged.home)
    if what == "missing":
        path.unlink()
    else:
        path.write_text("ab" * 32 if what == "replaced" else "ab")
    for action in (check, begin):
        with pytest.raises(BadInput, match="ppdm key restore") as caught:
            action(judged)
        assert caught.value.exit_code == 2
    assert path.exists() == (what != "missing")
    with judged.transaction() as db:  # reading needs no key
        assert db.execute("select count(*) from meta.event").fetchall() == [(6,)]


@pytest.mark.parametrize("what", ["the same", "another", "none"])
def test_home_key_lost_record_bad_input(judged: Store, what: str) -> None:
    path = home_key.home_key_path(judged.home)
    edit(judged, "delete from meta.home_key")
    if what == "another":
        path.write_text("ab" * 32)
    if what == "none":
        path.unlink()
    for action in (check, begin):
        with pytest.raises(BadInput, match="record of their key is gone"):
            action(judged)
    assert path.exists() == (what != "none")


def test_monotonic_now_clock_moved_back_machine_trouble(
    judged: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with judged.transaction() as db:
        ((last,),) = db.execute("select max(happened) from meta.event").fetchall()
    monkeypatch.setattr(seals, "now", lambda: last - timedelta(seconds=61))
    with pytest.raises(MachineTrouble, match="clock") as caught:
        begin(judged)
    assert caught.value.exit_code == 5
    monkeypatch.undo()
    with judged.transaction() as db:
        assert db.execute("select count(*) from meta.event").fetchall() == [(6,)]
    check(judged)


def test_monotonic_now_small_correction_last_event_time(
    judged: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with judged.transaction() as db:
        ((last,),) = db.execute("select max(happened) from meta.event").fetchall()
        monkeypatch.setattr(seals, "now", lambda: last - timedelta(seconds=30))
        assert monotonic_now(db) == last
        append_event(db, "wine", "", "note", {})
    check(judged)
    with judged.transaction() as db:
        assert db.execute("select max(happened) from meta.event").fetchall() == [(last,)]


def test_check_history_events_out_of_order_refused(
    judged: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check finds them even if their writer had the key."""
    monkeypatch.setattr("warehouse.integrity.events.monotonic_now", lambda db: TIME)
    with judged.transaction() as db:
        append_event(db, "wine", "", "note", {})
    with pytest.raises(Refused, match=r"Event 7 .* happened before"):
        check(judged)
