"""The review of a pool at a site: what reviewers decide when the attacks on it leave it open.

A REVIEW of the pool is decided as one of the site's own release: by `ppdm decide`, by persons who
did not make that release, with as many approvals as the site's policy asks for.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, Undecided
from ppdm_core.model.verdict import Review
from tasks.context import ReleaseContext
from tasks.dataset_lock import hold_dataset
from tasks.judge.decision import (
    check_in_time,
    check_same_release,
    find_approver,
    find_rejecter,
    store_decision,
)
from tasks.note_text import check_line
from tasks.redaction import redact_errors
from warehouse.approvals import Choice, Standing, count_approvals, read_decisions
from warehouse.database import get_run
from warehouse.integrity.events import append_event
from warehouse.integrity.seals import SEALED, insert_sealed
from warehouse.messages.membership import RELEASE_FILE, exchange_folder, find_session
from warehouse.pending_reviews import find_pending_file
from warehouse.reviewers import read_reviewers
from warehouse.stage_facts import PoolFacts, find_facts, store_facts
from warehouse.tables import PENDING_FILES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from warehouse.transaction import Transaction


def store_pool_facts(context: ReleaseContext, release_id: str, facts: PoolFacts) -> None:
    """Store the verdict on the pool, and the release file if reviewers have to decide."""
    store = context.open_store()
    with store.transaction(release_id) as db:
        run = get_run(db, release_id)
        store_facts(db, run, facts)
        if facts.verdict.outcome == "REVIEW" and find_pending_file(db, release_id) is None:
            row = {"release_id": release_id, "file": context.file}
            sealed = [insert_sealed(db, PENDING_FILES, row)]
            append_event(db, context.dataset, release_id, "pool in review", {SEALED: sealed})


def count_pool_approvals(
    db: Transaction, release_id: str, facts: PoolFacts, review: Review
) -> Standing:
    """Return the approvals of the pool that count now."""
    reached = datetime.fromisoformat(facts.reached)
    return count_approvals(db, release_id, facts.verdict, review, reached=reached)


def collect_approvals(context: ReleaseContext, release_id: str, facts: PoolFacts) -> int:
    """Return how many reviewers approved the pool; raise Undecided while too few did.

    It is 0 for a verdict that leaves nothing to decide, and after a rejection.
    """
    if facts.verdict.outcome != "REVIEW":
        return 0
    with context.open_store().transaction(release_id) as db:
        standing = count_pool_approvals(db, release_id, facts, context.policy.review)
        is_rejected = is_pool_rejected(db, release_id, facts)
        key = " --key FILE" if read_reviewers(db) else ""
    if standing.missing and not is_rejected:
        raise Undecided(
            f"The attacks of this site leave the decision to its reviewers: "
            f"{facts.verdict.failures[0].text} {standing.missing} of {standing.needed} approvals "
            f"are missing: ppdm decide {release_id} --approve{key} (or --reject).",
            remedy="Then run the same command again: it continues.",
        )
    return 0 if is_rejected else len(standing.counted)


def is_pool_rejected(db: Transaction, release_id: str, facts: PoolFacts) -> bool:
    """Return whether a person rejected the pool."""
    return any(
        decision.choice == "reject" and decision.about[0] == facts.verdict.data_digest
        for decision in read_decisions(db, release_id)
    )


def find_open_pool(db: Transaction, release_id: str) -> PoolFacts | None:
    """Return the verdict on the pool if it waits for a decision about it, else None."""
    facts, file = find_facts(db, release_id, PoolFacts), find_pending_file(db, release_id)
    if facts is None or facts.verdict.outcome != "REVIEW" or file is None:
        return None
    dataset = get_run(db, release_id).dataset
    session = exchange_folder(db.home, dataset) / find_session(db.home, dataset) / RELEASE_FILE
    is_current = session.exists() and session.read_text() == release_id
    if not is_current or is_pool_rejected(db, release_id, facts):
        return None
    standing = count_pool_approvals(db, release_id, facts, Review(**file["review"]))
    return facts if standing.missing else None


@redact_errors
def record_pool_decision(
    context: ReleaseContext,
    release_id: str,
    choice: Choice,
    note: str,
    shown: str | None = None,
    key: Ed25519PrivateKey | None = None,
) -> Standing:
    """Store a decision about the pool, and return the approvals that it has now."""
    note, shown = check_line("--note", note), shown and check_line("--by", shown)
    review = context.policy.review
    with hold_dataset(context), context.open_store().transaction(release_id) as db:
        run, facts = get_run(db, release_id), find_open_pool(db, release_id)
        if facts is None:
            raise BadInput(
                f"The common release with {release_id} does not wait for a decision of this site.",
                remedy="See what waits: ppdm site status FILE",
            )
        if choice == "approve":
            check_same_release(context, run)
            check_in_time(db, run, review, datetime.fromisoformat(facts.reached))
            person = find_approver(db, run, key)
        else:
            person = find_rejecter(db, key)
        store_decision(db, run, facts.verdict, person, choice, note, shown, key)
        return count_pool_approvals(db, release_id, facts, review)
