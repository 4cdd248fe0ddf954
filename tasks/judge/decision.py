"""The decision of a person about a release that awaits review.

The decision is stored by the person who runs the command, and only then carried out, with the same
checks as any release. The note stays in the warehouse.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.verdict import Verdict
from tasks.code_version import compute_code_version
from tasks.context import ReleaseContext
from tasks.dataset_lock import hold_dataset
from tasks.note_text import check_line
from tasks.redaction import redact_errors
from warehouse import approvals
from warehouse.approvals import Choice, Person
from warehouse.audit_results import find_verdict
from warehouse.database import Run, Store, get_run
from warehouse.integrity.events import append_event
from warehouse.integrity.seals import SEALED, insert_sealed
from warehouse.sources import SOURCES
from warehouse.stage_facts import EndingFacts, store_facts
from warehouse.stages import Stage
from warehouse.tables import DECISIONS

RELEASE_AGAIN = "Run the release again, and decide about its result."


@redact_errors
def record_decision(
    context: ReleaseContext, release_id: str, choice: Choice, note: str, shown: str | None = None
) -> None:
    """Store a decision; a rejection ends the release."""
    note, shown = check_line("--note", note), shown and check_line("--by", shown)
    with hold_dataset(context):
        store = context.open_store()
        with store.transaction(release_id) as db:
            run = get_run(db, release_id)
        check_awaits_review(run)
        if choice == "approve":
            check_same_release(context, run)
            approve(store, run, note, shown)
        else:
            reject(store, run, note, shown)


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


def approve(store: Store, run: Run, note: str, shown: str | None) -> None:
    """Store the approval of the current user, who must not be an author."""
    person = approvals.current_user()
    with store.transaction(run.release_id) as db:
        verdict = check_review(find_verdict(db, run.release_id), run)
        check_not_author(person, approvals.read_authors(db, run.release_id), run)
        row = approvals.build_decision(db, run.release_id, verdict, person, "approve", note, shown)
        sealed = [insert_sealed(db, DECISIONS, row)]
        detail = {"choice": "approve", "by": person.name, SEALED: sealed}
        append_event(db, run.dataset, run.release_id, "decision", detail)


def check_not_author(person: Person, authors: Sequence[Person], run: Run) -> None:
    """Check that a person is known not to be an author of a release."""
    if any(author.is_unknown for author in authors):
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


def reject(store: Store, run: Run, note: str, shown: str | None) -> None:
    """Store the rejection of the current user, who may be an author, and end the release."""
    person = approvals.find_current_user()
    with store.advance(run, Stage.REFUSED, rejected_by=person.name) as change:
        verdict = check_review(find_verdict(change.db, run.release_id), run)
        row = approvals.build_decision(
            change.db, run.release_id, verdict, person, "reject", note, shown
        )
        change.insert_sealed(DECISIONS, row)
        store_facts(change.db, run, EndingFacts(rejected_by=person.name))


def check_review(verdict: Verdict | None, run: Run) -> Verdict:
    """Return the verdict if it is a REVIEW."""
    if verdict is None or verdict.outcome != "REVIEW":
        raise Refused(
            f"The verdict on {run.release_id} leaves nothing to decide.", remedy=RELEASE_AGAIN
        )
    return verdict
