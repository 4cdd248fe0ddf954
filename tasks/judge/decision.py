"""The decision of a person about a release that awaits review.

The decision is stored by the person who runs the command, and only then carried out, with the same
checks as any release. The note stays in the warehouse.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.verdict import Review, Verdict
from tasks.context import ReleaseContext
from tasks.dataset_lock import hold_dataset
from tasks.note_text import check_line
from tasks.redaction import redact_errors
from warehouse import approvals
from warehouse.approvals import Author, Choice, Person
from warehouse.audit_results import find_verdict
from warehouse.checkpoints import checkpoint
from warehouse.code_version import compute_code_version
from warehouse.database import Run, Store, get_run
from warehouse.integrity.events import append_event
from warehouse.integrity.seals import SEALED, insert_sealed, monotonic_now
from warehouse.reviewers import Reviewers, find_enrolled, read_reviewers
from warehouse.sources import SOURCES
from warehouse.stage_facts import EndingFacts, store_facts
from warehouse.stages import Stage
from warehouse.tables import DECISIONS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from warehouse.transaction import Transaction

RELEASE_AGAIN = "Run the release again, and decide about its result."


@redact_errors
def record_decision(
    context: ReleaseContext,
    release_id: str,
    choice: Choice,
    note: str,
    shown: str | None = None,
    key: Ed25519PrivateKey | None = None,
) -> None:
    """Store a decision, signed if a key is given; a rejection ends the release."""
    note, shown = check_line("--note", note), shown and check_line("--by", shown)
    with hold_dataset(context):
        store = context.open_store()
        with store.transaction(release_id) as db:
            run = get_run(db, release_id)
        check_awaits_review(run)
        if choice == "approve":
            check_same_release(context, run)
            approve(store, run, context.policy.review, note, shown, key)
        else:
            reject(store, run, note, shown, key)


def check_awaits_review(run: Run) -> None:
    """Check that a run awaits the decision of a person."""
    if run.stage != Stage.AWAITING_REVIEW:
        raise BadInput(
            f"{run.release_id} does not wait for a decision: it is '{run.stage}'.",
            remedy="See what waits: ppdm status",
        )


def check_same_release(context: ReleaseContext, run: Run) -> None:
    """Check that code, release file and source are those of the verdict.

    If one of them changed, the next run abandons this release.
    """
    if compute_code_version() != run.code_version:
        raise Refused(
            f"The code changed after the verdict on {run.release_id}.", remedy=RELEASE_AGAIN
        )
    if (context.dataset, context.file_digest) != (run.dataset, run.file_digest):
        raise Refused(
            f"The release file of {run.release_id} is not the stored one.", remedy=RELEASE_AGAIN
        )
    if SOURCES[context.source.kind].digest(context.source) != run.source_digest:
        raise Refused(
            f"The source changed after the verdict on {run.release_id}.", remedy=RELEASE_AGAIN
        )


def approve(
    store: Store,
    run: Run,
    review: Review,
    note: str,
    shown: str | None,
    key: Ed25519PrivateKey | None,
) -> None:
    """Store the approval of a person who is not an author."""
    with store.transaction(run.release_id) as db:
        verdict = check_review(find_verdict(db, run.release_id), run)
        check_in_time(db, run, review)
        person = find_approver(db, run, key)
        store_decision(db, run, verdict, person, "approve", note, shown, key)
        checkpoint("before commit of a decision")
    checkpoint("after commit of a decision")


def store_decision(
    db: Transaction,
    run: Run,
    verdict: Verdict,
    person: Person,
    choice: Choice,
    note: str,
    shown: str | None,
    key: Ed25519PrivateKey | None,
) -> None:
    """Insert a decision as a sealed row, with its event."""
    row = approvals.build_decision(db, run.release_id, verdict, person, choice, note, shown, key)
    sealed = [insert_sealed(db, DECISIONS, row)]
    detail = {"choice": choice, "by": person.name, SEALED: sealed}
    append_event(db, run.dataset, run.release_id, "decision", detail)


def check_in_time(
    db: Transaction, run: Run, review: Review, reached: datetime | None = None
) -> None:
    """Check that a release can still be approved; ``reached``: when its verdict was."""
    deadline = approvals.find_deadline(db, run.release_id, review, reached)
    if deadline is not None and monotonic_now(db) > deadline:
        raise BadInput(
            f"{run.release_id} could be approved until {deadline.astimezone(UTC):%Y-%m-%d %H:%M} "
            "(UTC).",
            remedy="Reword the reason of a limit in the release file, and release it again.",
        )


def find_approver(db: Transaction, run: Run, key: Ed25519PrivateKey | None) -> Person:
    """Return the person who approves: by key in a home with keys, else by operating-system user."""
    authors, reviewers = approvals.read_authors(db, run.release_id), read_reviewers(db)
    if reviewers and key is None:
        raise BadInput(
            "This home has reviewers' keys, so an approval is signed.",
            remedy="Name your own key with --key FILE; see: ppdm reviewer list",
        )
    if key is None:
        person = approvals.current_user()
        check_not_author(person, authors, run)
        return person
    person = identify_signer(reviewers, key)
    check_signer(reviewers, key, person, authors, run)
    return person


def identify_signer(reviewers: Reviewers, key: Ed25519PrivateKey) -> Person:
    """Return the reviewer whose key this is, with the current user as additional information."""
    if not reviewers:
        raise BadInput(
            "No reviewer's key is enrolled in this home, so users decide, and not keys.",
            remedy="Leave out --key.",
        )
    found = find_enrolled(reviewers, key)
    uid = approvals.find_current_user().uid
    return Person(uid, found.name, reviewers.find_holder(found.key))


def check_signer(
    reviewers: Reviewers,
    key: Ed25519PrivateKey,
    person: Person,
    authors: Sequence[Author],
    run: Run,
) -> None:
    """Check that the key of a reviewer may approve a release."""
    found = find_enrolled(reviewers, key)
    if approvals.is_author(person, authors):
        is_own = any(author.public == found.public for author in authors)
        why = (
            "which the same key signed"
            if is_own
            else "because it counts as a key of its author: they have one name, or were enrolled "
            "by the same reviewer or by each other"
        )
        raise BadInput(
            f"The key of {found.name} cannot approve {run.release_id}, {why}.",
            remedy="Ask a reviewer whose key the author did not enrol; see: ppdm reviewer list",
        )
    if not found.added < min(author.happened for author in authors):
        raise BadInput(
            f"The key of {found.name} was enrolled after {run.release_id} began.",
            remedy="Ask a reviewer whose key was enrolled before; see: ppdm reviewer list",
        )


def check_not_author(person: Person, authors: Sequence[Author], run: Run) -> None:
    """Check that a person is known not to be an author of a release."""
    if any(author.person.is_unknown for author in authors):
        raise Refused(
            f"Nobody can approve {run.release_id}: a user namespace hid who made it.",
            remedy="Reword the reason of a limit in the release file, and release it outside the "
            "container or namespace: that is a new release, with a known author.",
        )
    if approvals.is_author(person, authors):
        raise Refused(
            f"{person.name} made {run.release_id}, and an author cannot approve a release.",
            remedy="Ask another person who may use this home, under their own user name.",
        )


def reject(
    store: Store, run: Run, note: str, shown: str | None, key: Ed25519PrivateKey | None
) -> None:
    """Store a rejection, which any person may make, also without a key, and end the release."""
    with store.advance(run, Stage.REFUSED) as change:
        verdict = check_review(find_verdict(change.db, run.release_id), run)
        person = find_rejecter(change.db, key)
        row = approvals.build_decision(
            change.db, run.release_id, verdict, person, "reject", note, shown, key
        )
        change.insert_sealed(DECISIONS, row)
        change.detail["rejected_by"] = person.name
        store_facts(change.db, run, EndingFacts(rejected_by=person.name))


def find_rejecter(db: Transaction, key: Ed25519PrivateKey | None) -> Person:
    """Return the person who rejects: by key if one is given, else the current user."""
    if key is None:
        return approvals.find_current_user()
    return identify_signer(read_reviewers(db), key)


def check_review(verdict: Verdict | None, run: Run) -> Verdict:
    """Return the verdict if it is a REVIEW."""
    if verdict is None or verdict.outcome != "REVIEW":
        raise Refused(
            f"The verdict on {run.release_id} leaves nothing to decide.", remedy=RELEASE_AGAIN
        )
    return verdict
