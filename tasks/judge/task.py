"""The step that turns the report of the audit into a verdict and charges the ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.gates import GateInput, decide
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding, Outcome, Verdict, worst
from tasks.context import ReleaseContext
from tasks.judge.earlier_tables import (
    judge_earlier_refusals,
    judge_record_ids,
    judge_tunes,
)
from tasks.judge.ledger_charge import build_scope, charge_ledger, compute_balance
from tasks.progress import Step, start_step
from tasks.redaction import redact_errors
from warehouse.audit_results import store_verdict
from warehouse.database import Run
from warehouse.integrity.history import check_history
from warehouse.stage_facts import AuditedFacts, SanitizedFacts, ValidatedFacts, read_facts
from warehouse.stages import Stage, is_past
from warehouse.tables import PENDING_FILES
from warehouse.transaction import Transaction

STAGES: dict[Outcome, Stage] = {
    "PASS": Stage.APPROVED,
    "REVIEW": Stage.AWAITING_REVIEW,
    "FAIL": Stage.REFUSED,
}


@task(name="judge", cache_policy=NO_CACHE)
@redact_errors
def judge(
    context: ReleaseContext, release_id: str, dry_run: bool = False, is_part: bool = False
) -> None:
    """Reach the verdict on a release, store it, and charge the ledger.

    A part of a common release ends here, unless it is refused: it leaves in sums alone.
    One transaction reads the ledger, decides and charges: two runs cannot spend the same.
    """
    start_step(Step.JUDGE)
    with context.open_run(release_id) as (_, run):
        if is_past(run.stage, Stage.AWAITING_REVIEW):
            return
    # The stage is refused until the verdict below sets it.
    with context.open_store().advance(run, Stage.REFUSED) as change:
        check_history(change.db)  # the verdict rests on unchanged records only
        facts = read_stored_facts(change.db, release_id)
        balance = compute_balance(change.db, run, context, facts.validated, facts.sanitized)
        verdict = reach_verdict(change.db, run, context, facts, balance)
        change.to = STAGES[verdict.outcome]
        if is_part and verdict.outcome != "FAIL":
            change.to = Stage.PART_JUDGED
        if dry_run and change.to == Stage.AWAITING_REVIEW:  # there is nothing to decide about
            change.to = Stage.DRY_RUN_PASSED
        change.detail["failures"] = len(verdict.failures)
        change.detail["broken"] = [describe_failure(finding) for finding in verdict.failures]
        store_verdict(change, release_id, verdict)
        charge_ledger(
            change, run, build_scope(context, facts.sanitized.guarantee), balance, verdict
        )
        if change.to == Stage.AWAITING_REVIEW:
            row = {"release_id": release_id, "file": context.file}
            change.insert_sealed(PENDING_FILES, row)


def describe_failure(finding: Finding) -> str:
    """Return a check that did not pass with its figures, for the event."""
    limit = f"; limit: {finding.limit}" if finding.limit else ""
    observed = f" {finding.observed}" if finding.observed else ""
    return f"{finding.outcome} {finding.check}{observed}{limit}"


@dataclass(frozen=True, eq=False)
class StoredFacts:
    """What the earlier steps stored of a release."""

    validated: ValidatedFacts
    sanitized: SanitizedFacts
    report: AuditReport


def read_stored_facts(db: Transaction, release_id: str) -> StoredFacts:
    """Return what the earlier steps stored of a release."""
    return StoredFacts(
        read_facts(db, release_id, ValidatedFacts),
        read_facts(db, release_id, SanitizedFacts),
        read_facts(db, release_id, AuditedFacts).report,
    )


def reach_verdict(
    db: Transaction,
    run: Run,
    context: ReleaseContext,
    facts: StoredFacts,
    balance: LedgerBalance | None,
) -> Verdict:
    """Return the verdict of all gates, and of what earlier tables of the home say."""
    sanitized = facts.sanitized
    gate_input = GateInput(
        report=facts.report,
        guarantee=sanitized.guarantee,
        method=context.method,
        policy=context.policy,
        owner=context.owner,
        audience=context.audience,
        has_numbers=bool(sanitized.public.columns),
        balance=balance,
        advice=context.make_sanitizer().advise(),
    )
    verdict = decide(gate_input, data_digest=sanitized.data_digest, code_version=run.code_version)
    findings = (
        *verdict.findings,
        *judge_earlier_refusals(db, run, facts.validated.data),
        *judge_record_ids(db, run),
        *judge_tunes(db, run, facts.validated.data, context.may_tune),
    )
    return replace(verdict, findings=findings, outcome=worst(findings))
