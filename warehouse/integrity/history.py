"""Whether the history of a home is whole: every event in its place, every sealed row as written.

What is found: an edited, deleted, inserted, moved or repeated event or sealed row; a stage or a
published version that the events do not tell of; a tail that was cut off, as long as the head
file, or a published folder that is younger, is still there. What cannot be found: a whole
`private` folder that was put back to an earlier state when nothing was published since.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.home import Home
from warehouse.integrity.events import EARLIER, read_head
from warehouse.integrity.home_key import HomeKey, home_key, home_of
from warehouse.integrity.seals import (
    EVENTS,
    NAMED,
    NOTHING,
    broken,
    earlier,
    is_sealed_by,
    mac_of,
    named,
    read_rows,
    sealed_tables,
    without_mac,
)
from warehouse.ledger.entries import check_ledger
from warehouse.publishing.manifest import NAME, file_digest
from warehouse.stages import ALLOWED, Stage

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]


@dataclass(frozen=True)
class History:
    """What was found to be whole."""

    events: tuple[Row, ...]  # the sealed ones, in order, with their MACs
    rows: int  # sealed rows beside the events
    unsealed: int  # rows from before there were seals

    @property
    def macs(self) -> dict[int, str]:
        return {event["number"]: event["mac"] for event in self.events}


def check_history(db: duckdb.DuckDBPyConnection) -> History:
    """Refuses the first thing that does not hold."""
    home, key = home_of(db), home_key(db)
    tables = {table: read_rows(db, table) for table in sealed_tables(db)}
    events = sorted(tables.pop(EVENTS, []), key=lambda event: event["number"] or 0)
    sealed = check_chain(key, events)
    rows = check_named(key, tables, sealed)
    history = History(tuple(sealed), rows, check_earlier({EVENTS: events, **tables}, sealed))
    check_head(home, key, history)
    for check in CHECKS:
        check(db, events)
    check_known(home, db)
    return history


def check_chain(key: HomeKey, events: list[Row]) -> list[Row]:
    """The sealed events; those before them are looked at as a whole."""
    sealed = list(dropwhile(lambda event: event["mac"] is None, events))
    before = events[: len(events) - len(sealed)]
    last = before[-1] if before else None
    for event in sealed:
        where = told(event)
        if event["number"] != ((last["number"] or 0) if last else 0) + 1:
            raise broken(f"The event before {where} is missing or not in its place.")
        previous = (last["mac"] or "") if last else ""
        if not is_sealed_by(event["mac"], mac_of(key, EVENTS, without_mac(event), previous)):
            raise broken(f"{where} was changed, or is not where it was written.")
        if last and event["happened"] < last["happened"]:
            raise broken(f"{where} happened before the event that it follows.")
        last = event
    return sealed


def told(event: Row) -> str:
    about = event["release_id"] or event["dataset"]
    return f"Event {event['number']} ({', '.join(filter(None, (about, event['kind'])))})"


def check_named(key: HomeKey, tables: Mapping[str, list[Row]], sealed: list[Row]) -> int:
    """The rows that events name are there, each once and as written, and no others are."""
    tellers = {mac: event for event in sealed for mac in json.loads(event["detail"]).get(NAMED, ())}
    found: Counter[str] = Counter()
    for table, rows in tables.items():
        for number, row in enumerate(rows, start=1):
            mac, where = row["mac"], f"Row {number} of {named(table, row)}"
            if mac is None:
                continue
            if not is_sealed_by(mac, mac_of(key, table, without_mac(row))):
                raise broken(f"{where} was changed after it was written.")
            if mac not in tellers or found[mac]:
                raise broken(f"{where} is there, but no event tells of it.")
            found[mac] += 1
    for mac, event in tellers.items():
        if not found[mac]:
            raise broken(f"A row that {told(event)} tells of was deleted.")
    return len(found)


def check_earlier(tables: Mapping[str, list[Row]], sealed: list[Row]) -> int:
    """Rows without a MAC are those, and only those, that were there when the seals came."""
    present = earlier(tables)
    if not sealed:
        return present.rows
    begun = json.loads(sealed[0]["detail"]) if sealed[0]["kind"] == EARLIER else asdict(NOTHING)
    if asdict(present) != begun:
        raise broken("A seal was removed, or rows from before there were seals were changed.")
    return present.rows


def check_stages(db: duckdb.DuckDBPyConnection, events: list[Row]) -> None:
    """Every run stands where its last step put it."""
    stages = dict(db.execute("select release_id, stage from meta.run").fetchall())
    steps = {each["release_id"]: each["kind"] for each in events if each["kind"] in ALLOWED}
    for release_id in sorted(stages.keys() | steps.keys()):
        if stages.get(release_id) != steps.get(release_id):
            raise broken(f"The stage of {release_id} is not the one that its events tell of.")


def check_runs(db: duckdb.DuckDBPyConnection, events: list[Row]) -> None:
    """Every run is of the source, file and code that it began with."""
    runs = db.execute(
        "select release_id, dataset, source_digest, file_digest, code_version from meta.run"
    ).fetchall()
    begun = {each["release_id"]: each for each in events if each["kind"] == Stage.CREATED}
    for release_id, *found in runs:
        event = begun.get(release_id)
        detail = json.loads(event["detail"]) if event else {}
        if event and "file" in detail:  # older ones tell nothing
            told = [event["dataset"], *(detail[name] for name in ("source", "file", "code"))]
            if found != told:
                raise broken(f"What {release_id} was made from is not what its events tell.")


def check_versions(db: duckdb.DuckDBPyConnection, events: list[Row]) -> None:
    """Every published version is told of, and none is missing."""
    versions = db.execute(
        "select dataset, format('{}-{:04d}', dataset, number), release_id, data_digest, "
        "manifest_digest from published.version"
    ).fetchall()
    details = [
        (each, json.loads(each["detail"])) for each in events if each["kind"] == Stage.PUBLISHED
    ]
    published = [
        (each["dataset"], each["release_id"], each["release_id"], d.get("data"), d.get("manifest"))
        for each, d in details
    ]
    if Counter(versions) != Counter(published):
        raise broken("The list of published versions is not the one that the events tell of.")


CHECKS: tuple[Callable[[duckdb.DuckDBPyConnection, list[Row]], None], ...] = (
    check_stages,
    check_runs,
    check_versions,
    check_ledger,
)


def check_head(home: Home, key: HomeKey, history: History) -> None:
    """A crash may leave the head behind the events, never the events behind the head."""
    head = read_head(home, key)
    if head is None and not history.events and not home.head.exists():
        return
    if head is None:
        raise broken(f"{home.head.name}, which tells how far events had come, is gone or not ours.")
    if head.number and history.macs.get(head.number) != head.mac:
        raise broken(f"The history once had an event {head.number} that is not there any more.")


def check_known(home: Home, db: duckdb.DuckDBPyConnection) -> None:
    """A published folder that no run made: the history was put back to an earlier state."""
    runs = {name for (name,) in db.execute("select release_id from meta.run").fetchall()}
    for release_id in published_manifests(home):
        if release_id not in runs:
            raise broken(f"{release_id} is published, and the history does not know it.")


def check_manifests(home: Home, db: duckdb.DuckDBPyConnection) -> int:
    """How many published versions are there, each with the manifest that it left with.

    One that is gone is no evidence: the steward may have withdrawn it.
    """
    rows = db.execute("select release_id, manifest_digest from published.version").fetchall()
    digests, manifests = dict(rows), published_manifests(home)
    for release_id in digests.keys() & manifests.keys():
        if file_digest(manifests[release_id]) != digests[release_id]:
            raise broken(f"The published manifest of {release_id} is not the one that left.")
    return len(digests.keys() & manifests.keys())


def published_manifests(home: Home) -> dict[str, Path]:
    paths = sorted(home.published.glob(f"*/[0-9]*/{NAME}"))
    return {f"{path.parent.parent.name}-{path.parent.name}": path for path in paths}
