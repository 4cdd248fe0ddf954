"""Who made a release, who decided what about it, and which approvals count now.

People are operating-system users: whoever runs the process. That proves no more than the machine
does. Rows of authors and decisions are sealed; a decision is about one verdict, for exactly its
data, policy and code.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ppdm_core.model.verdict import Review, Verdict
from warehouse.integrity.seals import keep, moment, sealed_rows

if TYPE_CHECKING:
    import duckdb

AUTHORS, DECISIONS, WAITERS = "meta.author", "audit.decision", "audit.waiting"
Choice = Literal["approve", "reject"]


@dataclass(frozen=True)
class Person:
    uid: int | None  # None: only a name, in the release file
    name: str

    def is_same(self, other: Person) -> bool:
        same_user = self.uid is not None and self.uid == other.uid
        return same_user or self.name.casefold() == other.name.casefold()


@dataclass(frozen=True)
class Decision:
    person: Person
    choice: Choice
    note: str
    happened: datetime
    about: tuple[str, str, str]  # digests of data and policy, version of the code
    shown: str | None = None  # how the person wants to be called


@dataclass(frozen=True)
class Standing:
    """What is decided so far about a release that waits."""

    counted: tuple[Decision, ...]
    needed: int

    @property
    def missing(self) -> int:
        return max(0, self.needed - len(self.counted))


def current_user() -> Person:
    """The operating-system user of this process."""
    uid = os.getuid()
    try:
        return Person(uid, pwd.getpwuid(uid).pw_name)
    except KeyError:  # a user without a name, as in some containers
        return Person(uid, f"uid-{uid}")


def keep_authors(db: duckdb.DuckDBPyConnection, release_id: str, owner: str) -> list[str]:
    """The owner that the file names, and whoever runs the release now; MACs of what is new."""
    known = authors(db, release_id)
    return [
        keep(
            db,
            AUTHORS,
            {
                "release_id": release_id,
                "uid": person.uid,
                "name": person.name,
                "happened": moment(db),
            },
        )
        for person in (Person(None, owner), current_user())
        if person not in known
    ]


def authors(db: duckdb.DuckDBPyConnection, release_id: str) -> list[Person]:
    rows = sealed_rows(db, AUTHORS, "release_id = ?", [release_id])
    return [Person(row["uid"], row["name"]) for row in rows]


def is_author(person: Person, makers: Iterable[Person]) -> bool:
    return any(person.is_same(maker) for maker in makers)


def about(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.data_digest, verdict.policy_digest, verdict.code_version


def decision_row(
    db: duckdb.DuckDBPyConnection,
    release_id: str,
    verdict: Verdict,
    choice: Choice,
    note: str,
    shown: str | None,
) -> dict[str, Any]:
    """What whoever runs this process decides now."""
    person = current_user()
    return {
        "release_id": release_id,
        "choice": choice,
        "uid": person.uid,
        "name": person.name,
        "shown": shown,
        "note": note,
        "data_digest": verdict.data_digest,
        "policy_digest": verdict.policy_digest,
        "code_version": verdict.code_version,
        "happened": moment(db),
    }


def decisions(db: duckdb.DuckDBPyConnection, release_id: str) -> list[Decision]:
    return [
        Decision(
            Person(row["uid"], row["name"]),
            row["choice"],
            row["note"],
            row["happened"],
            (row["data_digest"], row["policy_digest"], row["code_version"]),
            row["shown"],
        )
        for row in sealed_rows(db, DECISIONS, "release_id = ?", [release_id])
    ]


def standing(
    db: duckdb.DuckDBPyConnection,
    release_id: str,
    verdict: Verdict,
    review: Review,
    at: datetime | None = None,
) -> Standing:
    """The approvals that count now: of this verdict, by others than its authors, not lapsed.

    Or that counted ``at`` some time. Of each person the last word holds. A rejection by anybody
    leaves none.
    """
    made, makers, at = decisions(db, release_id), authors(db, release_id), at or moment(db)
    last = {decision.person.uid: decision for decision in made}
    counted = tuple(
        decision
        for decision in last.values()
        if decision.choice == "approve"
        and decision.about == about(verdict)
        and not is_author(decision.person, makers)
        and 0 <= (at - decision.happened).total_seconds() <= review.lapses_after
    )
    is_void = not makers or any(decision.choice != "approve" for decision in made)
    return Standing(() if is_void else counted, max(1, review.approvals))


def kept_file(db: duckdb.DuckDBPyConnection, release_id: str) -> dict[str, Any] | None:
    """The release file of what waits, as it was when the verdict was reached."""
    rows = sealed_rows(db, WAITERS, "release_id = ?", [release_id])
    return json.loads(rows[0]["file"]) if len(rows) == 1 else None


def standing_of(
    db: duckdb.DuckDBPyConnection,
    release_id: str,
    verdict: Verdict | None,
    at: datetime | None = None,
) -> Standing | None:
    """By what its own file asks of people; None if nothing is there to decide."""
    file = kept_file(db, release_id)
    if file is None or verdict is None:
        return None
    return standing(db, release_id, verdict, Review(**file["review"]), at)
