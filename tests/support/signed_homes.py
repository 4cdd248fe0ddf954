"""Homes with reviewers' keys, runs that await review in them, and forgers with the home's key."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import tasks.judge.decision
from tests.support.contexts import start_run
from tests.support.waiting_runs import CODE, OWNER, Office
from warehouse.approvals import Choice
from warehouse.columns import Source
from warehouse.database import Run
from warehouse.integrity.events import Head, write_head
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import (
    SEALED,
    drop_mac,
    list_sealed_tables,
    mac_of,
    read_rows,
)
from warehouse.reviewers import add_reviewer, remove_reviewer
from warehouse.sources import SOURCES
from warehouse.tables import EVENTS
from warehouse.transaction import Transaction

NAMES = ("first", "sam", "rita", "raj", "late", "puppet", "stranger")


def make_key(name: str) -> Ed25519PrivateKey:
    """Return the key of a person; the same one each time."""
    return Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32))


KEYS: Mapping[str, Ed25519PrivateKey] = {name: make_key(name) for name in NAMES}


def get_public(name: str) -> str:
    return KEYS[name].public_key().public_bytes_raw().hex()


class SignedOffice(Office):
    """A home whose first key enrolled Sam, who makes releases, and the reviewers Rita and Raj.

    Sam enrolled a key of a puppet before the release, and Rita a late one after it.
    """

    def enrol(self, name: str, by: str | None) -> None:
        self.later(seconds=1)
        with self.store.transaction("tests") as db:
            add_reviewer(db, name, get_public(name), None if by is None else KEYS[by])

    def remove(self, name: str, by: str) -> None:
        self.later(seconds=1)
        with self.store.transaction("tests") as db:
            remove_reviewer(db, name, KEYS[by])

    def enrol_team(self) -> None:
        self.enrol("first", None)
        for name in ("sam", "rita", "raj"):
            self.enrol(name, "first")
        self.enrol("puppet", "sam")

    def await_review(self) -> None:
        """Let Sam make a release; after it began, Rita enrols another key."""
        self.enrol_team()
        self.waiting()
        self.enrol("late", "rita")

    def begin(self, author: str | None = "sam") -> Run:
        self.later(seconds=1)
        return start_run(
            self.store,
            dataset="t",
            owner=OWNER,
            source_digest=SOURCES["csv"].digest(Source("csv", str(self.table))),
            file_digest=self.file,
            code_version=CODE,
            pid=os.getpid(),
            flow_run_id=None,
            author_key=None if author is None else KEYS[author],
        )[0]

    def sign(self, name: str, choice: Choice = "approve", note: str = "I looked.") -> None:
        """Decide with the key of a person."""
        self.later(seconds=1)
        tasks.judge.decision.record_decision(self.context, "t-0001", choice, note, None, KEYS[name])


def reseal(db: Transaction) -> None:
    """Seal all rows and events as they are now, as a person with the key of the home can."""
    key, macs = home_key(db), {}
    for table in list_sealed_tables(db):
        if table == EVENTS:
            continue
        places = db.execute(f"select rowid, mac from {table} order by rowid").fetchall()
        for (place, old), row in zip(places, read_rows(db, table), strict=True):
            macs[old] = mac_of(key, table, drop_mac(row))
            db.execute(f"update {table} set mac = ? where rowid = ?", [macs[old], place])
    previous = ""
    for event in read_rows(db, EVENTS):
        detail = json.loads(event["detail"])
        if SEALED in detail:
            detail[SEALED] = [macs[mac] for mac in detail[SEALED] if mac in macs]
        fields: dict[str, Any] = {**drop_mac(event), "detail": json.dumps(detail, sort_keys=True)}
        previous = mac_of(key, EVENTS, fields, previous)
        db.execute(
            f"update {EVENTS} set detail = ?, mac = ? where number = ?",
            [fields["detail"], previous, event["number"]],
        )
    write_head(db.home, key, Head(event["number"], previous))
