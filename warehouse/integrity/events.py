"""The append-only log: a chain of sealed events, and the head that tells how far it has come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import Defect
from warehouse.checkpoints import checkpoint
from warehouse.home import Home, machine_errors
from warehouse.integrity.home_key import HomeKey, has_seals, home_key, home_of
from warehouse.integrity.key_files import write_whole
from warehouse.integrity.seals import (
    EVENTS,
    earlier,
    insert,
    is_sealed_by,
    mac_of,
    moment,
    read_rows,
    sealed_tables,
)

if TYPE_CHECKING:
    import duckdb

EARLIER = "earlier history"  # kind of the event that seals what was there before the seals


appended = 0  # in this process, so that nobody must ask the warehouse whether something was told


def append_event(
    db: duckdb.DuckDBPyConnection,
    dataset: str,
    release_id: str,
    kind: str,
    detail: Mapping[str, Any],
) -> None:
    """The next link of the chain. Numbers have no gaps: the warehouse has one writer at a time."""
    if not has_seals(db):
        begin_chain(db)
    number, previous = last_event(db)
    append_link(db, number, previous or "", (dataset, release_id, kind, detail))


def begin_chain(db: duckdb.DuckDBPyConnection) -> None:
    home = home_of(db)
    if not home.head.exists():  # it must be there before the first event is
        write_head(home, home_key(db), Head(0, ""))
    number, _ = last_event(db)
    if number:
        rows = {table: read_rows(db, table) for table in sealed_tables(db)}
        append_link(db, number, "", ("", "", EARLIER, asdict(earlier(rows))))


def last_event(db: duckdb.DuckDBPyConnection) -> tuple[int, str | None]:
    rows = db.execute(
        "select number, mac from meta.event order by number desc, rowid desc limit 1"
    ).fetchall()
    return rows[0] if rows else (0, "")


def append_link(
    db: duckdb.DuckDBPyConnection,
    number: int,
    previous: str,
    told: tuple[str, str, str, Mapping[str, Any]],
) -> None:
    dataset, release_id, kind, detail = told
    event = {
        "number": number + 1,
        "happened": moment(db),
        "dataset": dataset,
        "release_id": release_id,
        "kind": kind,
        "detail": json.dumps(dict(detail), sort_keys=True),
    }
    mac = mac_of(home_key(db), EVENTS, event, previous)
    insert(db, EVENTS, {**event, "mac": mac})
    global appended
    appended += 1


@dataclass(frozen=True)
class Head:
    """The last event that was committed, sealed by itself: only an old copy can stand in for it."""

    number: int
    mac: str

    def seal(self, key: HomeKey) -> str:
        return mac_of(key, "history.head", asdict(self))


def read_head(home: Home, key: HomeKey) -> Head | None:
    try:
        content = json.loads(home.head.read_text())
        head = Head(content["number"], content["mac"])
        return head if is_sealed_by(content["seal"], head.seal(key)) else None
    except (OSError, ValueError, KeyError, TypeError, Defect):
        return None


def write_head(home: Home, key: HomeKey, head: Head) -> None:
    with machine_errors(home.head):
        write_whole(home.head, json.dumps({**asdict(head), "seal": head.seal(key)}) + "\n")


def keep_head(db: duckdb.DuckDBPyConnection) -> None:
    """After a commit that told something. A head that is missing or that contradicts the events
    stays as it is: it is evidence, and it shuts the door."""
    home, key = home_of(db), home_key(db)
    head = read_head(home, key)
    if head is None:
        return
    at_head = db.execute("select mac from meta.event where number = ?", [head.number]).fetchall()
    number, mac = last_event(db)
    if mac and (head.number == 0 or at_head == [(head.mac,)]):
        checkpoint("events committed")
        write_head(home, key, Head(number, mac))
