"""Tunes of a dataset: the events that record what was tried, and the sealed results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from warehouse.integrity.events import append_event
from warehouse.integrity.seals import (
    SEALED,
    insert_sealed,
    monotonic_now,
    read_rows,
    read_sealed_rows,
)
from warehouse.tables import EVENTS, TUNES

if TYPE_CHECKING:
    from warehouse.transaction import Transaction

BEGUN, ENDED = "tune begun", "tune ended"  # kinds of events


@dataclass(frozen=True)
class StoredTune:
    """A tune that ended."""

    number: int
    data: str  # digest of the records
    policy: str  # digest
    result: Mapping[str, Any]
    happened: datetime


@dataclass(frozen=True)
class Records:
    """What identifies the records that are tuned or released."""

    data: str  # digest of the validated records, with their keys of the dataset
    source: str  # digest of the content of the source, under whatever name of a dataset


def record_begin(
    db: Transaction,
    dataset: str,
    plan: str,
    records: Records,
    settings: Sequence[str],
    limits: Mapping[str, float],
) -> None:
    """Append the event of a tune before anything is measured.

    ``plan`` identifies the tune: one that is continued after a kill has its event already.
    ``settings`` are digests.
    """
    events = [detail for kind, detail in list_tune_events(db, dataset) if kind in (BEGUN, ENDED)]
    if events and events[-1].get("plan") == plan and "outcome" not in events[-1]:
        return
    append_event(
        db,
        dataset,
        "",
        BEGUN,
        {
            "plan": plan,
            "data": records.data,
            "source": records.source,
            "settings": list(settings),
            "limits": dict(limits),
        },
    )


def store_tune(
    db: Transaction,
    dataset: str,
    plan: str,
    *,
    data: str,
    policy: str,
    outcome: str,
    result: Mapping[str, Any],
) -> int:
    """Store the result of a tune as a sealed row with its event; return its number."""
    number = 1 + len(read_rows(db, TUNES, "dataset = ?", [dataset]))
    row = {
        "dataset": dataset,
        "number": number,
        "data": data,
        "policy": policy,
        "result": json.dumps(result, allow_nan=False, sort_keys=True),
        "happened": monotonic_now(db),
    }
    sealed = [insert_sealed(db, TUNES, row)]
    detail = {"plan": plan, "number": number, "outcome": outcome, SEALED: sealed}
    append_event(db, dataset, "", ENDED, detail)
    return number


def find_finished_tune(db: Transaction, dataset: str, plan: str) -> StoredTune | None:
    """Return the tune that ended with this plan if nothing happened to the dataset since then."""
    events = read_rows(db, EVENTS, "dataset = ?", [dataset])
    if not events:
        return None
    last = max(events, key=lambda row: int(row["number"]))
    if last["kind"] != ENDED or json.loads(last["detail"]).get("plan") != plan:
        return None
    return find_last_tune(db, dataset)


def find_last_tune(db: Transaction, dataset: str) -> StoredTune | None:
    """Return the last tune of a dataset that ended, or None; an edited one is refused."""
    rows = read_sealed_rows(db, TUNES, "dataset = ?", [dataset])
    if not rows:
        return None
    row = max(rows, key=lambda each: each["number"])
    result = json.loads(row["result"])
    return StoredTune(row["number"], row["data"], row["policy"], result, row["happened"])


def count_tried_settings(
    db: Transaction, dataset: str, records: Records, more: Sequence[str] = ()
) -> int:
    """Return how many settings were tried on a dataset, or on the same records under any name.

    Settings count when a tune begins: one that was killed may have shown them. The same setting on
    other records, for example on other columns, counts again. ``more`` are those of a tune that is
    about to begin.
    """
    tried = {(records.data, each) for each in more}
    for row in read_rows(db, EVENTS, "kind = ?", [BEGUN]):
        detail = json.loads(row["detail"])
        is_same = detail["data"] == records.data or detail["source"] == records.source
        if row["dataset"] == dataset or is_same:
            tried |= {(detail["data"], each) for each in detail["settings"]}
    return len(tried)


def list_tune_events(db: Transaction, dataset: str) -> list[tuple[str, dict[str, Any]]]:
    """Return kind and detail of the events of a dataset's tunes, in order."""
    rows = read_rows(db, EVENTS, "dataset = ? and release_id = ''", [dataset])
    rows.sort(key=lambda row: int(row["number"]))
    return [(row["kind"], json.loads(row["detail"])) for row in rows]
