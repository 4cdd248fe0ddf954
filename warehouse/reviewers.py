"""Reviewers' keys: which are enrolled in a home, since when, and which of them count as one.

The first key is enrolled before the home has a release, and needs no signature. All later changes
are signed by an enrolled key. Each signature covers the change before, so that none of them can be
left out, and the home, so that none of them can be used elsewhere.

A key that the holder of the first key enrols belongs to another holder. A key that any other
reviewer enrols counts as a key of that reviewer: otherwise one person could enrol keys of his own
and approve with them what he made.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import canonical_json, key_fingerprint
from ppdm_core.model.statement import (
    REVIEWER,
    Signature,
    compute_fingerprint,
    is_signed,
    sign_statement,
)
from warehouse.integrity.events import append_event
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import (
    SEALED,
    insert_sealed,
    integrity_error,
    monotonic_now,
    read_sealed_rows,
)
from warehouse.tables import REVIEWERS, RUNS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from warehouse.transaction import Transaction

Action = Literal["add", "remove"]
NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}")
EVENT_KINDS: dict[Action, str] = {"add": "reviewer added", "remove": "reviewer removed"}


@dataclass(frozen=True)
class ReviewerKey:
    """A key that is enrolled, or was."""

    name: str
    public: str
    enrolled_by: str | None  # fingerprint; None: the first key
    added: datetime
    removed: datetime | None = None

    @property
    def key(self) -> str:
        """The fingerprint of the public key."""
        return compute_fingerprint(self.public)

    def is_enrolled(self, at: datetime) -> bool:
        """Return whether the key was enrolled at a time, and not removed by then."""
        return self.added <= at and (self.removed is None or at < self.removed)


@dataclass(frozen=True)
class Reviewers:
    """All keys that were ever enrolled in a home, by fingerprint, in order."""

    keys: Mapping[str, ReviewerKey]
    last: str = ""  # digest of the last change

    def __bool__(self) -> bool:
        return bool(self.keys)

    @property
    def first(self) -> str | None:
        """The fingerprint of the first key."""
        return next(iter(self.keys), None)

    @property
    def enrolled(self) -> list[ReviewerKey]:
        """The keys that are not removed."""
        return [each for each in self.keys.values() if each.removed is None]

    def find_holder(self, key: str) -> str:
        """Return the key that stands for the holder of a key: itself, or that of its enroller."""
        while (enroller := self.keys[key].enrolled_by) not in (None, self.first):
            assert enroller is not None
            key = enroller
        return key


def read_reviewers(db: Transaction) -> Reviewers:
    """Return the reviewers' keys of a home; refuse a change that no enrolled key signed."""
    found, home = Reviewers({}), None
    for row in read_sealed_rows(db, REVIEWERS):
        home = home or name_home(db)
        statement = build_statement(home, row)
        check_change(found, row, statement)
        found = apply_change(found, row, statement)
    return found


def check_change(found: Reviewers, row: Mapping[str, Any], statement: Mapping[str, str]) -> None:
    """Check that a stored change follows the one before, and that an enrolled key signed it."""
    is_first = not found
    times = [each.removed or each.added for each in found.keys.values()]
    signers = {each.public for each in found.enrolled}
    is_by_reviewer = row["signer"] in signers and is_signed(
        REVIEWER, statement, Signature(row["signer"], row["signature"])
    )
    is_possible = is_first if row["signer"] is None else is_by_reviewer
    key = compute_fingerprint(row["public"])
    is_new = key not in found.keys
    is_known = not is_new and found.keys[key].removed is None and len(found.enrolled) > 1
    if (
        not is_possible
        or row["previous"] != found.last
        or any(time > row["happened"] for time in times)
        or not (is_new if row["action"] == "add" else is_known)
    ):
        raise integrity_error(f"No enrolled key signed that the key of {row['name']} was changed.")


def apply_change(
    found: Reviewers, row: Mapping[str, Any], statement: Mapping[str, str]
) -> Reviewers:
    """Return the keys after a change."""
    key, signer = compute_fingerprint(row["public"]), row["signer"]
    if row["action"] == "add":
        by = None if signer is None else compute_fingerprint(signer)
        changed = ReviewerKey(row["name"], row["public"], by, row["happened"])
    else:
        changed = replace(found.keys[key], removed=row["happened"])
    digest = hashlib.sha256(canonical_json([statement, row["signature"]]).encode()).hexdigest()
    return Reviewers({**found.keys, key: changed}, digest)


def build_statement(home: str, row: Mapping[str, Any]) -> dict[str, str]:
    """Return what is signed about a change."""
    return {
        "home": home,
        "action": row["action"],
        "name": row["name"],
        "public": row["public"],
        "previous": row["previous"],
        "at": format_time(row["happened"]),
    }


def name_home(db: Transaction) -> str:
    """Return the fingerprint of the key with which a home signs manifests."""
    return key_fingerprint(home_key(db).signing().public_key())


def format_time(time: datetime) -> str:
    """Return a time as statements have it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def add_reviewer(
    db: Transaction, name: str, public: str, signer: Ed25519PrivateKey | None
) -> ReviewerKey:
    """Enrol a key under a name; the first one without a signature."""
    found = read_reviewers(db)
    if not NAME.fullmatch(name):
        raise BadInput(
            f"'{name}' cannot be a reviewer's name.",
            remedy="Use at most 40 letters, digits, '.', '_' and '-', the first a letter.",
        )
    known = found.keys.get(compute_fingerprint(public))
    if known is not None:
        state = "is enrolled already" if known.removed is None else "was removed from this home"
        raise BadInput(
            f"The key {known.key} {state}, as that of {known.name}.",
            remedy="Make another key: ppdm reviewer key FILE",
        )
    if any(each.name.casefold() == name.casefold() for each in found.enrolled):
        raise BadInput(
            f"There is a reviewer '{name}' already.",
            remedy="Choose another name, or remove that key first: ppdm reviewer remove",
        )
    if not found:
        check_can_begin(db)
    store_change(db, found, "add", name, public, signer if found else None)
    return read_reviewers(db).keys[compute_fingerprint(public)]


def check_can_begin(db: Transaction) -> None:
    """Check that a home without keys has no release: its authors signed nothing."""
    if db.execute(f"select 1 from {RUNS} limit 1").fetchall():
        raise BadInput(
            "This home has releases that no key signed, so that no key can be enrolled in it.",
            remedy="Enrol keys in a new home, before its first release; name it with --home.",
        )


def remove_reviewer(db: Transaction, name: str, signer: Ed25519PrivateKey) -> ReviewerKey:
    """Remove the key of a reviewer; the last one stays."""
    found = read_reviewers(db)
    named = [each for each in found.enrolled if each.name == name]
    if not named:
        raise BadInput(
            f"There is no reviewer '{name}' in this home.", remedy="See: ppdm reviewer list"
        )
    if len(found.enrolled) == 1:
        raise BadInput(
            f"The key of {name} is the last one, and a home with keys keeps one.",
            remedy="Enrol another key first: ppdm reviewer add",
        )
    store_change(db, found, "remove", name, named[0].public, signer)
    return named[0]


def find_enrolled(found: Reviewers, key: Ed25519PrivateKey) -> ReviewerKey:
    """Return the reviewer whose key this is; raise BadInput if it is not enrolled."""
    fingerprint = key_fingerprint(key.public_key())
    known = found.keys.get(fingerprint)
    if known is None or known.removed is not None:
        state = "is not enrolled in" if known is None else "was removed from"
        raise BadInput(
            f"The key {fingerprint} {state} this home.", remedy="See: ppdm reviewer list"
        )
    return known


def store_change(
    db: Transaction,
    found: Reviewers,
    action: Action,
    name: str,
    public: str,
    signer: Ed25519PrivateKey | None,
) -> None:
    """Store a change as a sealed row, with its event; all but the first need a signature."""
    row: dict[str, Any] = {
        "action": action,
        "name": name,
        "public": public,
        "previous": found.last,
        "happened": monotonic_now(db),
    }
    by = ""
    if found:
        if signer is None:
            raise BadInput(
                "This home has reviewers, and only one of them can change that.",
                remedy="Add the key of an enrolled reviewer: --signed-by FILE",
            )
        by = find_enrolled(found, signer).name
        signature = sign_statement(REVIEWER, build_statement(name_home(db), row), signer)
        row |= {"signer": signature.public, "signature": signature.ed25519}
    sealed = [insert_sealed(db, REVIEWERS, row)]
    detail = {"name": name, "key": compute_fingerprint(public), "by": by, SEALED: sealed}
    append_event(db, "", "", EVENT_KINDS[action], detail)
