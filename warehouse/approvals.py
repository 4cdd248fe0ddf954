"""Who made a release, what reviewers decided about it, and which approvals count now.

In a home with reviewers' keys, authors and reviewers are known by the keys with which they sign.
In any other home they are the operating-system users that run the process, which proves no more
than the machine does. Where the kernel does not say who that is, the author is unknown: it may be
anybody, so nobody can approve. Rows of authors and decisions are sealed; a decision is about one
verdict, for exactly its data, policy and code.
"""

from __future__ import annotations

import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from ppdm_core.model.errors import Refused
from ppdm_core.model.statement import compute_fingerprint
from ppdm_core.model.verdict import Review, Verdict
from warehouse.integrity.seals import insert_sealed, monotonic_now, read_sealed_rows
from warehouse.process_user import read_process_uid
from warehouse.reviewers import Reviewers, name_home, read_reviewers
from warehouse.signatures import (
    SignedStatement,
    is_qualified,
    read_signed,
    sign_authorship,
    sign_decision,
)
from warehouse.tables import AUTHORS, DECISIONS, VERDICTS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from warehouse.database import Run
    from warehouse.transaction import Transaction

Choice = Literal["approve", "reject"]
UNKNOWN_UID = -1  # no user has it


@dataclass(frozen=True)
class Person:
    """A person by key, by operating-system user, or by the name in a release file."""

    uid: int | None  # None: only a name, in the release file
    name: str
    holder: str | None = None  # the key that stands for all keys of the person; None: no key

    @property
    def is_unknown(self) -> bool:
        """Whether it may be anybody."""
        return self.uid == UNKNOWN_UID and self.holder is None

    @property
    def identity(self) -> str | int | None:
        """What is equal for two decisions of one person."""
        return self.uid if self.holder is None else self.holder

    def is_same(self, other: Person) -> bool:
        """Return whether both may be one person: by key or user id, or by name in any letters."""
        if self.is_unknown or other.is_unknown:
            return True
        is_signed = self.holder is not None or other.holder is not None
        mine, others = (self.holder, other.holder) if is_signed else (self.uid, other.uid)
        is_same_person = mine is not None and mine == others
        return is_same_person or self.name.casefold() == other.name.casefold()


UNKNOWN = Person(UNKNOWN_UID, "an unknown user")


@dataclass(frozen=True)
class Author:
    """A person who made a release."""

    person: Person
    public: str | None  # the key that signed it; None: the home has no keys, or it is the owner
    happened: datetime


@dataclass(frozen=True)
class Decision:
    """What one person decided about one verdict."""

    person: Person
    choice: Choice
    note: str
    happened: datetime
    about: tuple[str, str, str]  # digests of data and policy, version of the code
    shown: str | None = None  # how the person wants to be called
    signed: SignedStatement | None = None


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


def store_authors(
    db: Transaction, run: Run, owner: str, key: Ed25519PrivateKey | None = None
) -> list[str]:
    """Store the owner in the release file and the person who runs it as authors; return new MACs.

    That person is the current user, or the reviewer whose key is given, who signs.
    """
    known = read_authors(db, run.release_id)
    macs = []
    for person in (Person(None, owner), find_current_user()):
        row: dict[str, Any] = {
            "release_id": run.release_id,
            "uid": person.uid,
            "name": person.name,
            "happened": monotonic_now(db),
        }
        if person.uid is not None and key is not None:
            row = sign_authorship(db, run, row, key)
        if not any(is_author_row(row, author) for author in known):
            macs.append(insert_sealed(db, AUTHORS, row))
    return macs


def is_author_row(row: Mapping[str, Any], author: Author) -> bool:
    """Return whether a row is about an author who is stored already."""
    return (row["uid"], row["name"], row.get("public")) == (
        author.person.uid,
        author.person.name,
        author.public,
    )


def read_authors(db: Transaction, release_id: str) -> list[Author]:
    """Return the authors of a release, the first one first."""
    rows = read_sealed_rows(db, AUTHORS, "release_id = ?", [release_id])
    reviewers = read_reviewers(db)
    return [Author(read_person(row, reviewers), row["public"], row["happened"]) for row in rows]


def read_person(row: Mapping[str, Any], reviewers: Reviewers) -> Person:
    """Return the person of a stored row; one without a key is unknown in a home with keys."""
    if not reviewers or row["uid"] is None:
        return Person(row["uid"], row["name"])
    key = compute_fingerprint(row["public"] or "")
    if key not in reviewers.keys:
        return UNKNOWN
    return Person(row["uid"], row["name"], reviewers.find_holder(key))


def is_author(person: Person, authors: Iterable[Author]) -> bool:
    """Return whether a person is one of the authors."""
    return any(person.is_same(author.person) for author in authors)


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
    key: Ed25519PrivateKey | None = None,
) -> dict[str, Any]:
    """Build the row of a person's decision, signed if a key is given."""
    row = {
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
    return row if key is None else sign_decision(db, row, verdict, key)


def read_decisions(db: Transaction, release_id: str) -> list[Decision]:
    """Return all decisions about a release, the oldest first."""
    reviewers, home = read_reviewers(db), name_home(db)
    return [
        Decision(
            read_person(row, reviewers),
            row["choice"],
            row["note"],
            row["happened"],
            (row["data_digest"], row["policy_digest"], row["code_version"]),
            row["shown"],
            read_signed(home, row),
        )
        for row in read_sealed_rows(db, DECISIONS, "release_id = ?", [release_id])
    ]


def count_approvals(
    db: Transaction,
    release_id: str,
    verdict: Verdict,
    review: Review,
    at: datetime | None = None,
    reached: datetime | None = None,
) -> Standing:
    """Return the approvals that count now, or counted ``at`` some time.

    ``reached`` is when the verdict was reached; None: when the stored verdict on the release was.

    An approval counts if it is of this verdict, by a person who is not an author, in time and not
    lapsed; in a home with keys, if a key that may judge this release signed it. Of several
    decisions of a person the last one holds. After a rejection by any person none counts.
    """
    made, authors = read_decisions(db, release_id), read_authors(db, release_id)
    at = at or monotonic_now(db)
    reviewers, deadline = read_reviewers(db), find_deadline(db, release_id, review, reached)
    began = min((author.happened for author in authors), default=at)
    counted = {
        decision.person.identity: decision
        for decision in made
        if decision.choice == "approve"
        and decision.about == identify_verdict(verdict)
        and not is_author(decision.person, authors)
        and 0 <= (at - decision.happened).total_seconds() <= review.lapses_after
        and (deadline is None or decision.happened <= deadline)
        and (not reviewers or is_qualified(decision.signed, verdict, reviewers, began, at))
    }
    is_void = not authors or any(
        decision.choice != "approve" and decision.happened <= at for decision in made
    )
    return Standing(() if is_void else tuple(counted.values()), max(1, review.approvals))


def find_deadline(
    db: Transaction, release_id: str, review: Review, reached: datetime | None = None
) -> datetime | None:
    """Return until when a release can be approved; None if its policy sets no time."""
    if review.decide_within is None:
        return None
    if reached is None:
        rows = read_sealed_rows(db, VERDICTS, "release_id = ?", [release_id])
        if not rows:
            return None
        reached = rows[-1]["happened"]
    return reached + timedelta(seconds=review.decide_within)
