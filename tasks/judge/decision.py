"""What people decide about a release that the gate left to them.

The decision is written down by whoever runs the command, and only then carried out, through the
same door as any release. The note stays in the warehouse.
"""

from __future__ import annotations

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.verdict import Verdict
from tasks.context import Plan, code_version
from tasks.dataset_lock import taking_turns
from tasks.redaction import shielded
from warehouse import approvals
from warehouse.approvals import Choice
from warehouse.database import Run, Store, keep_fact, tell
from warehouse.integrity.seals import NAMED, keep
from warehouse.publishing.publish import read_verdict
from warehouse.runs import must_find
from warehouse.sources import SOURCES
from warehouse.stages import Stage

MOST_LETTERS = 1000
AGAIN = "Run the release again: what it makes then is decided anew."


@shielded
def record_decision(
    plan: Plan, release_id: str, choice: Choice, note: str, shown: str | None = None
) -> None:
    """Writes it down; a rejection ends the release."""
    note, shown = plain_text("--note", note), shown and plain_text("--by", shown)
    with taking_turns(plan):
        store = plan.store()
        with store.transaction(release_id) as db:
            run = must_find(db, release_id)
        check_waiting(run)
        if choice == "approve":
            check_unchanged(plan, run)
            approve(store, run, note, shown)
        else:
            reject(store, run, note, shown)


def plain_text(option: str, text: str) -> str:
    text = text.strip()
    if not text or len(text) > MOST_LETTERS or not text.isprintable():
        raise BadInput(
            f"{option} takes one line of at most {MOST_LETTERS} letters.",
            remedy="Say in a sentence what you decide by.",
        )
    return text


def check_waiting(run: Run) -> None:
    if run.stage != Stage.AWAITING_REVIEW:
        raise BadInput(
            f"{run.release_id} does not wait for a decision: it is '{run.stage}'.",
            remedy="See what waits: ppdm status",
        )


def check_unchanged(plan: Plan, run: Run) -> None:
    """An approval is of what the gate saw; the next run then abandons what waited."""
    if code_version() != run.code_version:
        raise Refused(f"The code changed after the verdict on {run.release_id}.", remedy=AGAIN)
    if (plan.dataset, plan.file_digest) != (run.dataset, run.file_digest):
        raise Refused(f"The release file of {run.release_id} is not the one kept.", remedy=AGAIN)
    if SOURCES[plan.source.kind].digest(plan.source) != run.source_digest:
        raise Refused(f"The source changed after the verdict on {run.release_id}.", remedy=AGAIN)


def approve(store: Store, run: Run, note: str, shown: str | None) -> None:
    person = approvals.current_user()
    with store.transaction(run.release_id) as db:
        verdict = reviewed(read_verdict(db, run.release_id), run)
        if approvals.is_author(person, approvals.authors(db, run.release_id)):
            raise Refused(
                f"{person.name} made {run.release_id}, and nobody approves a release of their own.",
                remedy="Ask somebody else who may use this home, under a user name of their own.",
            )
        row = approvals.decision_row(db, run.release_id, verdict, "approve", note, shown)
        told = {"choice": "approve", "by": person.name, NAMED: [keep(db, approvals.DECISIONS, row)]}
        tell(db, run.dataset, run.release_id, "decision", told)


def reject(store: Store, run: Run, note: str, shown: str | None) -> None:
    """Anybody may, also the author."""
    person = approvals.current_user()
    with store.advance(run, Stage.REFUSED, rejected_by=person.name) as change:
        verdict = reviewed(read_verdict(change.db, run.release_id), run)
        row = approvals.decision_row(change.db, run.release_id, verdict, "reject", note, shown)
        change.keep(approvals.DECISIONS, row)
        keep_fact(change.db, run, "ending", {"rejected_by": person.name})


def reviewed(verdict: Verdict | None, run: Run) -> Verdict:
    if verdict is None or verdict.outcome != "REVIEW":
        raise Refused(f"The verdict on {run.release_id} leaves nothing to people.", remedy=AGAIN)
    return verdict
