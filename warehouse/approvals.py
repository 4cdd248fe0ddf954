"""Who made a release, what reviewers decided about it, and which approvals count now.

Authors and reviewers are the operating-system users that run the process, which proves no more
than the machine does. Where the kernel does not say who that is, the author is unknown: it may be
anybody, so nobody can approve. Rows of authors and decisions are sealed; a decision is about one
verdict, for exactly its data, policy and code.
"""

from __future__ import annotations

import json
import pwd
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ppdm_core.model.errors import Refused
from ppdm_core.model.verdict import Review, Verdict
from warehouse.integrity.seals import insert_sealed, monotonic_now, read_sealed_rows
from warehouse.process_user import read_process_uid
from warehouse.tables import AUTHORS, DECISIONS, PENDING_FILES

if TYPE_CHECKING:
    from warehouse.transaction import Transaction

Choice = Literal["approve", "reject"]
UNKNOWN_UID = -1  # no user has it


@dataclass(frozen=True)
class Person:
    """A person by operating-system user, or by the name in a release file."""

    uid: int | None  # None: only a name, in the release file
    name: str

    @property
    def is_unknown(self) -> bool:
        """Whether it may be anybody."""
        return self.uid == UNKNOWN_UID

    def is_same(self, other: Person) -> bool:
        """Return whether both may be one person: by user id, or by name in any letters."""
        if self.is_unknown or other.is_unknown:
            return True
        is_same_user = self.uid is not None and self.uid == other.uid
        return is_same_user or self.name.casefold() == other.name.casefold()


UNKNOWN = Person(UNKNOWN_UID, "an unknown user")


@dataclass(frozen=True)
class Decision:
    """What one person decided about one verdict."""

    person: Person
    choice: Choice
    note: str
    happened: datetime
    about: tuple[str, str, str]  # digests of data and policy, version of the code
    shown: str | None = None  # how the person wants to be called


@dataclass(frozen=True)
class Standing:
    """The approvals so far of a release that awaits review."""

    counted: tuple[Decision, ...]
    needed: int

    @property
    def missing(self) -> int:
        return max(0, self.needed - len(self.counted))


def current_user() -> Person:
    """Return the operating-system user of this process; raise Refused if it cannot be known."""
    uid = read_process_uid()
    try:
        return Person(uid, pwd.getpwuid(uid).pw_name)
    except KeyError:  # a user without a name, as in some containers
        return Person(uid, f"uid-{uid}")


def find_current_user() -> Person:
    """Return the operating-system user of this process, ``UNKNOWN`` if it cannot be known."""
    try:
        return current_user()
    except Refused:
        return UNKNOWN


def store_authors(db: Transaction, release_id: str, owner: str) -> list[str]:
    """Store the owner in the release file and the current user as authors; return new MACs."""
    known = read_authors(db, release_id)
    return [
        insert_sealed(
            db,
            AUTHORS,
            {
                "release_id": release_id,
                "uid": person.uid,
                "name": person.name,
                "happened": monotonic_now(db),
            },
        )
        for person in (Person(None, owner), find_current_user())
        if person not in known
    ]


def read_authors(db: Transaction, release_id: str) -> list[Person]:
    """Return the authors of a release."""
    rows = read_sealed_rows(db, AUTHORS, "release_id = ?", [release_id])
    return [Person(row["uid"], row["name"]) for row in rows]


def is_author(person: Person, authors: Iterable[Person]) -> bool:
    """Return whether a person is one of the authors."""
    return any(person.is_same(author) for author in authors)


def identify_verdict(verdict: Verdict) -> tuple[str, str, str]:
    """Return the digests of data and policy and the version of the code of a verdict."""
    return verdict.data_digest, verdict.policy_digest, verdict.code_version


def build_decision(
    db: Transaction,
    release_id: str,
    verdict: Verdict,
    person: Person,
    choice: Choice,
    note: str,
    shown: str | None,
) -> dict[str, Any]:
    """Build the row of a person's decision."""
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
        "happened": monotonic_now(db),
    }


def read_decisions(db: Transaction, release_id: str) -> list[Decision]:
    """Return all decisions about a release, the oldest first."""
    return [
        Decision(
            Person(row["uid"], row["name"]),
            row["choice"],
            row["note"],
            row["happened"],
            (row["data_digest"], row["policy_digest"], row["code_version"]),
            row["shown"],
        )
        for row in read_sealed_rows(db, DECISIONS, "release_id = ?", [release_id])
    ]


def count_approvals(
    db: Transaction,
    release_id: str,
    verdict: Verdict,
    review: Review,
    at: datetime | None = None,
) -> Standing:
    """Return the approvals that count now, or counted ``at`` some time.

    An approval counts if it is of this verdict, by a person who is not an author, and not lapsed.
    Of several decisions of a person the last one holds. After a rejection by any person none
    counts.
    """
    made, authors = read_decisions(db, release_id), read_authors(db, release_id)
    at = at or monotonic_now(db)
    last = {decision.person.uid: decision for decision in made}
    counted = tuple(
        decision
        for decision in last.values()
        if decision.choice == "approve"
        and decision.about == identify_verdict(verdict)
        and not is_author(decision.person, authors)
        and 0 <= (at - decision.happened).total_seconds() <= review.lapses_after
    )
    is_void = not authors or any(decision.choice != "approve" for decision in made)
    return Standing(() if is_void else counted, max(1, review.approvals))


def find_pending_file(db: Transaction, release_id: str) -> dict[str, Any] | None:
    """Return the release file that a REVIEW was reached with, or None if none was stored."""
    rows = read_sealed_rows(db, PENDING_FILES, "release_id = ?", [release_id])
    return json.loads(rows[0]["file"]) if len(rows) == 1 else None


def find_standing(
    db: Transaction, release_id: str, verdict: Verdict | None, at: datetime | None = None
) -> Standing | None:
    """Return the approvals of a release by the rules of its own file; None if it has none."""
    file = find_pending_file(db, release_id)
    if file is None or verdict is None:
        return None
    return count_approvals(db, release_id, verdict, Review(**file["review"]), at)
