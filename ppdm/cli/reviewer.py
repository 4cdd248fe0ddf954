"""`ppdm reviewer`: make, enrol, list and remove the keys with which people sign."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ppdm.cli.console import make_grid
from ppdm.cli.home import check_new_file, open_home
from ppdm.cli.passphrase import choose_passphrase
from ppdm.cli.replies.others import ReviewerBody, ReviewerReply
from ppdm.cli.result import CommandResult
from ppdm.release_folder import read_public_key
from ppdm_core.model.errors import BadInput
from tasks.environment import choose_home
from tasks.signing_key import read_private_key, write_key_pair
from warehouse.database import Store
from warehouse.home import Home
from warehouse.reviewers import (
    ReviewerKey,
    Reviewers,
    add_reviewer,
    read_reviewers,
    remove_reviewer,
)

TITLES = ("name", "key", "since", "enrolled by", "")
FIRST_KEY = (
    "It is the first key of this home. Its holder enrols the reviewers and authors, and cannot "
    "sign a release."
)


def make_key(file: Path) -> CommandResult:
    """Write a new private key, protected by a passphrase, and its public part."""
    public = file.with_suffix(".pub")
    if public == file:
        raise BadInput(
            f"{file.name} is the name of the public part.",
            file=str(file),
            remedy="Name the private key with another ending, such as .pem.",
        )
    for path in (file, public):
        check_new_file(path)
    fingerprint = write_key_pair(file, public, choose_passphrase(file))
    text = (
        f"The key {fingerprint} is in {file}; keep it for yourself. Its public part is in {public}."
    )
    reply = ReviewerReply(fingerprint=fingerprint, files=[str(file), str(public)])
    return CommandResult(text, reply.as_payload())


def enrol_reviewer(
    name: str, public: Path, signed_by: Path | None, passphrase: str | None, home: Path | None
) -> CommandResult:
    """Enrol a public key under a name; the home is made if there is none."""
    key = read_public_key(public, "Name the .pub file that `ppdm reviewer key` wrote.")
    signer = None if signed_by is None else read_private_key(signed_by, passphrase)
    root = Home(choose_home(home))
    root.create()
    with Store(root).transaction("reviewer") as db:
        added = add_reviewer(db, name, key.public_bytes_raw().hex(), signer)
        found = read_reviewers(db)
    first = f" {FIRST_KEY}" if added.key == found.first else ""
    text = f"The key {added.key} of {name} is enrolled.{first}"
    return CommandResult(text, build_reply(found, [added]))


def drop_reviewer(
    name: str, signed_by: Path, passphrase: str | None, home: Path | None
) -> CommandResult:
    """Remove the key of a reviewer."""
    signer = read_private_key(signed_by, passphrase)
    store = open_home(home)
    store.home.create()  # sets the modes of new files in a shared home
    with store.transaction("reviewer") as db:
        removed = remove_reviewer(db, name, signer)
        found = read_reviewers(db)
    text = f"The key {removed.key} of {name} is removed; its approvals no longer count."
    return CommandResult(text, build_reply(found, [found.keys[removed.key]]))


def list_reviewers(home: Path | None) -> CommandResult:
    """List all keys that were ever enrolled in a home."""
    with open_home(home).transaction("reviewer") as db:
        found = read_reviewers(db)
    lines = [
        (
            each.name,
            each.key,
            f"{each.added:%Y-%m-%d %H:%M}",
            found.keys[each.enrolled_by].name if each.enrolled_by else "the first key",
            f"removed {each.removed:%Y-%m-%d %H:%M}" if each.removed else "",
        )
        for each in found.keys.values()
    ]
    empty = "No reviewer's key is enrolled: operating-system users decide."
    view = make_grid(lines, TITLES) if lines else empty
    return CommandResult(view, build_reply(found, found.keys.values()))


def build_reply(found: Reviewers, keys: Iterable[ReviewerKey]) -> dict[str, object]:
    """Return keys as `--json` prints them."""
    bodies = [
        ReviewerBody(
            name=each.name,
            key=each.key,
            enrolled_by=each.enrolled_by,
            holder=found.find_holder(each.key),
            added=each.added.isoformat(),
            removed=each.removed.isoformat() if each.removed else None,
        )
        for each in keys
    ]
    return ReviewerReply(reviewers=bodies).as_payload()
