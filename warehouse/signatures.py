"""What authors and reviewers sign, and the check of these signatures.

In a home with reviewers' keys, every author signs the release that he makes, and every approval is
signed. The signatures stand in the sealed rows of authors and decisions. They can be checked
without the key of the home, and that key cannot make one.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import canonical_json
from ppdm_core.model.statement import (
    AUTHOR,
    DECISION,
    Signature,
    compute_fingerprint,
    is_signed,
    sign_statement,
)
from ppdm_core.model.verdict import Verdict
from warehouse.integrity.seals import integrity_error, read_sealed_rows
from warehouse.reviewers import Reviewers, find_enrolled, format_time, name_home, read_reviewers
from warehouse.tables import AUTHORS, DECISIONS, RUNS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from warehouse.database import Run
    from warehouse.transaction import Transaction

SALT_BYTES = 16


@dataclass(frozen=True)
class SignedStatement:
    """What a reviewer signed about a release."""

    statement: Mapping[str, Any]
    signature: Signature


def check_author_key(db: Transaction, key: Ed25519PrivateKey | None) -> None:
    """Check that the author of a release signs it, in a home with keys, and in no other.

    The first key signs no release: its holder chose all reviewers, so that none of them may
    approve it.
    """
    reviewers = read_reviewers(db)
    if not reviewers and key is None:
        return
    if not reviewers:
        raise BadInput(
            "No reviewer's key is enrolled in this home, so a release of it is not signed.",
            remedy="Leave out --key and PPDM_KEY; see: ppdm reviewer add --help",
        )
    if key is None:
        raise BadInput(
            "This home has reviewers' keys, so the author of a release signs it.",
            remedy="Name your own key with --key or PPDM_KEY; see: ppdm reviewer list",
        )
    found = find_enrolled(reviewers, key)
    if found.key == reviewers.first:
        raise BadInput(
            f"The key of {found.name} is the first one of this home: every other key rests on it, "
            "so that no reviewer could approve a release that it signs.",
            remedy="Sign with another key: ppdm reviewer add NAME --public FILE --signed-by FILE",
        )


def sign_authorship(
    db: Transaction, run: Run, row: Mapping[str, Any], key: Ed25519PrivateKey
) -> dict[str, Any]:
    """Return the row of an author with name, key and signature."""
    found = find_enrolled(read_reviewers(db), key)
    named = {**row, "name": found.name, "public": found.public}
    identity = (run.dataset, run.source_digest, run.file_digest, run.code_version)
    signature = sign_statement(AUTHOR, build_authorship(name_home(db), named, identity), key)
    return {**named, "signature": signature.ed25519}


def build_authorship(
    home: str, row: Mapping[str, Any], identity: tuple[str, str, str, str]
) -> dict[str, str]:
    """Return what an author signs: the release, and what it is made of."""
    dataset, source, file, code = identity
    return {
        "home": home,
        "release_id": row["release_id"],
        "dataset": dataset,
        "source": source,
        "file": file,
        "code": code,
        "by": row["name"],
        "key": compute_fingerprint(row["public"]),
        "at": format_time(row["happened"]),
    }


def sign_decision(
    db: Transaction, row: Mapping[str, Any], verdict: Verdict, key: Ed25519PrivateKey
) -> dict[str, Any]:
    """Return the row of a decision with verdict, key and signature."""
    signed = {
        **row,
        "verdict_digest": digest_verdict(verdict),
        "salt": secrets.token_hex(SALT_BYTES),
        "public": key.public_key().public_bytes_raw().hex(),
    }
    signature = sign_statement(DECISION, build_decision_statement(name_home(db), signed), key)
    return {**signed, "signature": signature.ed25519}


def build_decision_statement(home: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reviewer signs; of the note a salted digest, because it is not published."""
    note = canonical_json([row["salt"], row["note"]])
    return {
        "home": home,
        "release_id": row["release_id"],
        "choice": row["choice"],
        "data": row["data_digest"],
        "policy": row["policy_digest"],
        "code": row["code_version"],
        "verdict": row["verdict_digest"],
        "by": row["name"],
        "shown": row["shown"] or "",
        "note": hashlib.sha256(note.encode()).hexdigest(),
        "key": compute_fingerprint(row["public"]),
        "at": format_time(row["happened"]),
    }


def digest_verdict(verdict: Verdict) -> str:
    """Return the digest of a verdict with all its findings."""
    return hashlib.sha256(canonical_json(verdict.as_dict()).encode()).hexdigest()


def read_signed(home: str, row: Mapping[str, Any]) -> SignedStatement | None:
    """Return what a reviewer signed in the row of a decision; None if it is not signed."""
    if row["public"] is None:
        return None
    signature = Signature(row["public"], row["signature"])
    return SignedStatement(build_decision_statement(home, row), signature)


def is_qualified(
    signed: SignedStatement | None,
    verdict: Verdict,
    reviewers: Reviewers,
    began: datetime,
    at: datetime,
) -> bool:
    """Return whether an approval is by a key that may judge a release that began at a time.

    The key must have been enrolled before, and still be ``at`` the time of counting.
    """
    if signed is None or not is_signed(DECISION, signed.statement, signed.signature):
        return False
    key = reviewers.keys.get(signed.signature.key)
    return (
        key is not None
        and key.added < began
        and key.is_enrolled(at)
        and signed.statement["by"] == key.name
        and signed.statement["verdict"] == digest_verdict(verdict)
    )


def check_signatures(db: Transaction, events: object) -> None:
    """Check every signature of a home; in one with keys, authors and approvals must have one."""
    reviewers, home = read_reviewers(db), name_home(db)
    runs = {
        release_id: tuple(identity)
        for release_id, *identity in db.execute(
            f"select release_id, dataset, source_digest, file_digest, code_version from {RUNS}"
        ).fetchall()
    }
    for row in read_sealed_rows(db, AUTHORS):
        if not is_owner(row) and not is_sound_author(reviewers, home, row, runs):
            raise integrity_error(f"An author of {row['release_id']} did not sign it.")
    for row in read_sealed_rows(db, DECISIONS):
        if not is_sound_decision(reviewers, home, row):
            raise integrity_error(f"A decision about {row['release_id']} is not signed.")


def is_owner(row: Mapping[str, Any]) -> bool:
    """Return whether the row of an author is that of the owner, whom the release file names."""
    return row["uid"] is None and row["public"] is None and row["signature"] is None


def is_sound_author(
    reviewers: Reviewers,
    home: str,
    row: Mapping[str, Any],
    runs: Mapping[str, tuple[Any, ...]],
) -> bool:
    """Return whether the row of an author is signed, in a home with keys, or not, in another."""
    if not reviewers:
        return row["public"] is None and row["signature"] is None
    identity: Any = runs.get(row["release_id"])
    if identity is None or row["public"] is None:
        return False
    statement = build_authorship(home, row, identity)
    is_by_key = is_signed(AUTHOR, statement, Signature(row["public"], row["signature"]))
    return is_by_key and was_enrolled(reviewers, row)


def is_sound_decision(reviewers: Reviewers, home: str, row: Mapping[str, Any]) -> bool:
    """Return whether a decision is signed as its home demands; a rejection needs no key."""
    signed = read_signed(home, row)
    if signed is None:
        is_unsigned = all(row[name] is None for name in ("signature", "salt", "verdict_digest"))
        return is_unsigned and (not reviewers or row["choice"] == "reject")
    is_by_key = is_signed(DECISION, signed.statement, signed.signature)
    return is_by_key and was_enrolled(reviewers, row)


def was_enrolled(reviewers: Reviewers, row: Mapping[str, Any]) -> bool:
    """Return whether the key of a row was enrolled under its name when the row was written."""
    key = reviewers.keys.get(compute_fingerprint(row["public"]))
    return key is not None and key.name == row["name"] and key.is_enrolled(row["happened"])
