"""`ppdm history`: list the events of a home, or check that they are complete and unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ppdm.cli.console import make_grid
from ppdm.cli.home import open_home
from ppdm.cli.replies.others import EventBody, HistoryReply
from ppdm.cli.result import CommandResult

TITLES = ("", "time", "about", "event")


def list_events(home: Path | None) -> CommandResult:
    """Return every event of a home in order."""
    from warehouse.integrity.seals import read_rows

    with open_home(home).transaction("history") as db:
        rows = sorted(read_rows(db, "meta.event"), key=lambda row: row["number"])
    lines = [
        (
            str(row["number"]),
            f"{row['happened']:%Y-%m-%d %H:%M:%S}",
            row["release_id"] or row["dataset"] or "-",
            ": ".join(filter(None, (row["kind"], "; ".join(list_broken(row))))),
        )
        for row in rows
    ]
    events = [
        EventBody(
            **{name: row[name] for name in ("number", "dataset", "release_id", "kind", "mac")},
            happened=row["happened"].isoformat(),
            broken=list_broken(row),
        )
        for row in rows
    ]
    view = make_grid(lines, TITLES, right=[0]) if lines else "No event is recorded yet."
    return CommandResult(view, HistoryReply(events=events, event_count=len(rows)).as_payload())


def list_broken(row: Mapping[str, Any]) -> list[str]:
    """Return the checks that a verdict found not kept, with their figures."""
    found: list[str] = json.loads(row["detail"]).get("broken", [])
    return found


def verify_history(home: Path | None) -> CommandResult:
    """Check the chain of events and the published folders; the first fault found is raised."""
    from warehouse.integrity.history import check_history
    from warehouse.integrity.published_folders import check_published
    from warehouse.publishing.withdraw import list_withdrawals

    with open_home(home).transaction("history") as db:
        found = check_history(db)
        folders = check_published(db)
        withdrawn = len(list_withdrawals(db))
    events = len(found.events)
    text = (
        f"The history is complete: {events:,} events in a chain, {found.rows:,} sealed rows, "
        f"{folders:,} published version{'' if folders == 1 else 's'}"
        f"{f', {withdrawn:,} withdrawn' if withdrawn else ''}."
    )
    reply = HistoryReply(event_count=events, rows=found.rows, folders=folders, withdrawn=withdrawn)
    return CommandResult(text, reply.as_payload())
