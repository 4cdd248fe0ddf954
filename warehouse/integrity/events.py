"""The append-only log: a chain of sealed events, and the head file that records its last one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import Defect
from warehouse.checkpoints import checkpoint
from warehouse.home import Home, translate_disk_errors
from warehouse.integrity.home_key import HomeKey, home_key
from warehouse.integrity.key_files import write_atomically
from warehouse.integrity.seals import insert, is_sealed_by, mac_of, monotonic_now
from warehouse.tables import EVENTS

if TYPE_CHECKING:
    from warehouse.transaction import Transaction


def append_event(
    db: Transaction, dataset: str, release_id: str, kind: str, detail: Mapping[str, Any]
) -> None:
    """Append the next event of the chain, sealed together with the one before.

    Numbers have no gaps, because the warehouse has one writer at a time.
    """
    number, previous = last_event(db)
    if number == 0 and not db.home.head.exists():  # it must exist before the first event does
        write_head(db.home, home_key(db), Head(0, ""))
    event = {
        "number": number + 1,
        "happened": monotonic_now(db),
        "dataset": dataset,
        "release_id": release_id,
        "kind": kind,
        "detail": json.dumps(dict(detail), sort_keys=True),
    }
    mac = mac_of(home_key(db), EVENTS, event, previous)
    insert(db, EVENTS, {**event, "mac": mac})
    db.has_new_events = True


def last_event(db: Transaction) -> tuple[int, str]:
    """Return number and MAC of the last event; (0, "") if there is none."""
    rows = db.execute(
        f"select number, coalesce(mac, '') from {EVENTS} order by number desc, rowid desc limit 1"
    ).fetchall()
    return rows[0] if rows else (0, "")


@dataclass(frozen=True)
class Head:
    """The last event that was committed, with its own seal: only an old copy can replace it."""

    number: int
    mac: str

    def seal(self, key: HomeKey) -> str:
        return mac_of(key, "history.head", asdict(self))


def read_head(home: Home, key: HomeKey) -> Head | None:
    """Return the head; None if it is missing, damaged or sealed by another key."""
    try:
        content = json.loads(home.head.read_text())
        head = Head(content["number"], content["mac"])
        return head if is_sealed_by(content["seal"], head.seal(key)) else None
    except (OSError, ValueError, KeyError, TypeError, Defect):
        return None


def write_head(home: Home, key: HomeKey, head: Head) -> None:
    """Write the head file, all or nothing."""
    with translate_disk_errors(home.head):
        write_atomically(home.head, json.dumps({**asdict(head), "seal": head.seal(key)}) + "\n")


def update_head(db: Transaction) -> None:
    """Write the last event to the head file, after a commit that appended events.

    A head that is missing or that contradicts the events stays as it is: it is evidence, and
    nothing is published before a person has looked at it.
    """
    home, key = db.home, home_key(db)
    head = read_head(home, key)
    if head is None:
        return
    at_head = db.execute(f"select mac from {EVENTS} where number = ?", [head.number]).fetchall()
    number, mac = last_event(db)
    if mac and (head.number == 0 or at_head == [(head.mac,)]):
        checkpoint("events committed")
        write_head(home, key, Head(number, mac))
