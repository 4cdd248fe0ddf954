"""The check of a home's history: every event in its place, every sealed row as it was written.

It finds an edited, deleted, inserted, moved or repeated event or sealed row; a stage or a published
version that no event records; and a tail that was cut off, as long as the head file or a younger
published folder still exists. It cannot find that the complete `private` folder was replaced by an
earlier copy when no folder exists that was published since.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warehouse.home import Home
from warehouse.integrity.events import read_head
from warehouse.integrity.home_key import HomeKey, home_key
from warehouse.integrity.published_folders import check_known_folders
from warehouse.integrity.seals import (
    SEALED,
    describe_row,
    drop_mac,
    integrity_error,
    is_sealed_by,
    list_sealed_tables,
    mac_of,
    read_rows,
)
from warehouse.ledger.entries import check_ledger
from warehouse.same_data.sketch_check import check_sketches
from warehouse.signatures import check_signatures
from warehouse.stages import ALLOWED, Stage
from warehouse.tables import EVENTS, RUNS, VERSIONS
from warehouse.transaction import Transaction

Row = dict[str, Any]


@dataclass(frozen=True)
class History:
    """A history that passed every check."""

    events: tuple[Row, ...]  # in order, with their MACs
    rows: int  # sealed rows in addition to the events

    @property
    def macs(self) -> dict[int, str]:
        return {event["number"]: event["mac"] for event in self.events}


def check_history(db: Transaction) -> History:
    """Check the complete history; refuse it with the first thing that does not hold."""
    key = home_key(db)
    tables = {table: read_rows(db, table) for table in list_sealed_tables(db)}
    events = sorted(tables.pop(EVENTS, []), key=lambda event: event["number"] or 0)
    check_chain(key, events)
    history = History(tuple(events), check_sealed_rows(key, tables, events))
    check_head(db.home, key, history)
    for check in CHECKS:
        check(db, events)
    check_known_folders(db)
    return history


def check_chain(key: HomeKey, events: list[Row]) -> None:
    """Check that events are numbered without gaps, in order of time, each sealed with the last."""
    last: Row | None = None
    for event in events:
        where = format_event(event)
        if event["number"] != (last["number"] if last else 0) + 1:
            raise integrity_error(f"The event before {where} is missing or not in its place.")
        previous = last["mac"] if last else ""
        if not is_sealed_by(event["mac"], mac_of(key, EVENTS, drop_mac(event), previous)):
            raise integrity_error(f"{where} was changed, or is not where it was written.")
        if last and event["happened"] < last["happened"]:
            raise integrity_error(f"{where} happened before the event that it follows.")
        last = event


def format_event(event: Row) -> str:
    """Return number, subject and kind of an event, for an error message."""
    about = event["release_id"] or event["dataset"]
    return f"Event {event['number']} ({', '.join(filter(None, (about, event['kind'])))})"


def check_sealed_rows(key: HomeKey, tables: Mapping[str, list[Row]], events: list[Row]) -> int:
    """Check that the rows that events name exist once and unchanged, and no others; count them."""
    named_by = {
        mac: event for event in events for mac in json.loads(event["detail"]).get(SEALED, ())
    }
    found: Counter[str] = Counter()
    for table, rows in tables.items():
        for number, row in enumerate(rows, start=1):
            mac, where = row["mac"], f"Row {number} of {describe_row(table, row)}"
            if not is_sealed_by(mac, mac_of(key, table, drop_mac(row))):
                raise integrity_error(f"{where} was changed after it was written.")
            if mac not in named_by or found[mac]:
                raise integrity_error(f"{where} exists, but no event names it.")
            found[mac] += 1
    for mac, event in named_by.items():
        if not found[mac]:
            raise integrity_error(f"A row that {format_event(event)} names was deleted.")
    return len(found)


def check_stages(db: Transaction, events: list[Row]) -> None:
    """Check that every run is at the stage of its last step."""
    stages = dict(db.execute(f"select release_id, stage from {RUNS}").fetchall())
    steps = {each["release_id"]: each["kind"] for each in events if each["kind"] in ALLOWED}
    for release_id in sorted(stages.keys() | steps.keys()):
        if stages.get(release_id) != steps.get(release_id):
            raise integrity_error(f"The stage of {release_id} is not the one of its last event.")


def check_runs(db: Transaction, events: list[Row]) -> None:
    """Check that every run has the source, file and code that it began with."""
    runs = db.execute(
        f"select release_id, dataset, source_digest, file_digest, code_version from {RUNS}"
    ).fetchall()
    begun = {each["release_id"]: each for each in events if each["kind"] == Stage.CREATED}
    for release_id, *found in runs:
        event = begun.get(release_id)
        detail = json.loads(event["detail"]) if event else {}
        expected = [detail.get(name) for name in ("source", "file", "code")]
        if event is None or found != [event["dataset"], *expected]:
            raise integrity_error(
                f"Source, file or code of {release_id} is not the one that its events record."
            )


def check_versions(db: Transaction, events: list[Row]) -> None:
    """Check that the published versions are exactly those that events record."""
    versions = db.execute(
        "select dataset, format('{}-{:04d}', dataset, number), release_id, data_digest, "
        f"manifest_digest from {VERSIONS}"
    ).fetchall()
    details = [
        (each, json.loads(each["detail"])) for each in events if each["kind"] == Stage.PUBLISHED
    ]
    published = [
        (each["dataset"], each["release_id"], each["release_id"], d.get("data"), d.get("manifest"))
        for each, d in details
    ]
    if Counter(versions) != Counter(published):
        raise integrity_error("The published versions are not those that the events record.")


CHECKS: tuple[Callable[[Transaction, list[Row]], None], ...] = (
    check_stages,
    check_runs,
    check_versions,
    check_ledger,
    check_sketches,
    check_signatures,
)


def check_head(home: Home, key: HomeKey, history: History) -> None:
    """Check the head file. A crash may leave it behind the events, never the other way round."""
    head = read_head(home, key)
    if head is None and not history.events and not home.head.exists():
        return
    if head is None:
        raise integrity_error(
            f"{home.head.name}, which records the last event, is missing or not of this home."
        )
    if head.number and history.macs.get(head.number) != head.mac:
        raise integrity_error(
            f"The history once had an event {head.number} that does not exist any more."
        )
