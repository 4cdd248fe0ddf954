"""A release as it is shown, from the warehouse alone: for the console, the card and MLflow."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ppdm_core.gates.amplification import FIGURES
from ppdm_core.model.errors import Defect
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding, Verdict
from ppdm_core.numerics.amplification import format_gamma
from tasks.judge.ledger_charge import format_entry
from warehouse.approvals import Decision, Standing, read_decisions
from warehouse.audit_results import find_verdict
from warehouse.database import Run, Store, get_run
from warehouse.ledger.entries import find_entry
from warehouse.messages.membership import belongs_to_common_release
from warehouse.pending_reviews import find_standing
from warehouse.publishing.publish import find_latest_version, find_publication_time
from warehouse.publishing.version_folders import version_folder
from warehouse.publishing.withdraw import Withdrawal, find_withdrawal
from warehouse.reviewers import read_reviewers
from warehouse.stage_facts import (
    AuditedFacts,
    EndingFacts,
    SanitizedFacts,
    SettingsFacts,
    SitesFacts,
    ValidatedFacts,
    find_facts,
)
from warehouse.stages import FINISHED, Stage
from warehouse.transaction import Transaction


@dataclass(frozen=True, eq=False)
class JudgedFacts:
    """Everything that a release with a verdict has."""

    validated: ValidatedFacts
    sanitized: SanitizedFacts
    report: AuditReport
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Summary:
    """A release at any stage; what later stages add is None."""

    home: Path
    run: Run
    settings: SettingsFacts | None = None
    validated: ValidatedFacts | None = None
    sanitized: SanitizedFacts | None = None
    report: AuditReport | None = None
    verdict: Verdict | None = None
    folder: Path | None = None  # where it was published
    ending: EndingFacts = field(default_factory=EndingFacts)
    withdrawal: Withdrawal | None = None
    latest: int | None = None  # number of the newest published version that is not withdrawn
    decisions: tuple[Decision, ...] = ()
    standing: Standing | None = None  # of a release that awaits review
    counted: tuple[Decision, ...] = ()  # approvals that count now, or did when it was published
    has_keys: bool = False  # reviewers of the home sign with keys
    sites: SitesFacts | None = None  # of a common release, at its centre
    is_part: bool = False  # of a common release, at one of its sites
    ledger: dict[str, Any] | None = None  # for outsiders
    ln_ledger: float | None = None  # ln gamma of all releases up to this one; None: not judged

    @property
    def judged(self) -> JudgedFacts:
        """Everything that a release with a verdict has; a defect if there is no verdict."""
        if not (self.validated and self.sanitized and self.report and self.verdict):
            raise Defect(f"{self.run.release_id} has no verdict.")
        return JudgedFacts(self.validated, self.sanitized, self.report, self.verdict)

    @property
    def guarantee(self) -> Guarantee | None:
        return self.sanitized.guarantee if self.sanitized else None

    @property
    def method(self) -> str:
        return self.sanitized.method if self.sanitized else "none"

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Why it was refused: by the gate, by a person, or by the checks before publishing."""
        if self.ending.refused_because:
            return (Finding("publish", "FAIL", self.ending.refused_because),)
        if self.ending.rejected_by:
            return (Finding("decision", "FAIL", f"{self.ending.rejected_by} rejected it."),)
        return self.verdict.failures if self.verdict else ()

    @property
    def is_undecided(self) -> bool:
        """Whether a person must decide: it awaits review, or would after a dry run."""
        is_review = self.verdict is not None and self.verdict.outcome == "REVIEW"
        stage, judged = self.run.stage, (Stage.DRY_RUN_PASSED, Stage.PART_JUDGED)
        return stage == Stage.AWAITING_REVIEW or (is_review and stage in judged)

    @property
    def decide_command(self) -> str:
        """The command of a reviewer, without his choice."""
        key = " --key FILE" if self.has_keys else ""
        return f"ppdm decide {self.run.release_id}{key}"

    @property
    def self_test(self) -> dict[str, list[str]] | None:
        """The self-test for outsiders."""
        result = self.report.self_test if self.report else None
        return result.summarize() if result else None

    @property
    def approvals(self) -> list[dict[str, Any]] | None:
        """The approvals for outsiders: by whom, with which key and on which day; without notes."""
        return [describe_approval(one) for one in self.counted] or None

    def format_outcome_sentence(self) -> str:
        """Return the outcome in one or two sentences."""
        name, stage = self.run.release_id, self.run.stage
        if stage == Stage.PUBLISHED:
            return f"{name} was approved and published as version {self.run.number:04d}."
        if self.withdrawal is not None:
            return f"{name} {self.withdrawal.words}"
        if stage == Stage.NO_CHANGE:
            return f"{name} has the same bytes as version {self.latest:04d}, which stays."
        if stage == Stage.PART_JUDGED:
            is_open = "is left to its reviewers" if self.is_undecided else "passed"
            return f"{name}, the part of this site in a common release, {is_open}."
        if stage == Stage.DRY_RUN_PASSED and not self.is_undecided:
            return f"{name} was approved in a dry run; nothing was published."
        if stage == Stage.DRY_RUN_PASSED:
            return f"{name} would wait for a decision; nothing was published in a dry run."
        stays = "" if self.latest is None else f"; version {self.latest:04d} stays the latest"
        why = f" {self.refusals[0].text}" if self.refusals else ""
        if stage == Stage.AWAITING_REVIEW:
            return f"{name} waits for a decision and nothing was published{stays}.{why}"
        if stage not in FINISHED:
            return f"{name} is not finished and nothing was published{stays}."
        if stage == Stage.ABANDONED:
            return f"{name} was abandoned and nothing was published{stays}."
        return f"{name} was refused and nothing was published{stays}.{why}"

    def ln_gammas(self) -> dict[str, float]:
        """Return ln gamma of a component, an attribute and a record."""
        units = FIGURES if self.guarantee else {}
        return {unit: getattr(self.guarantee, figure) for unit, figure in units.items()}

    def gammas(self) -> dict[str, str]:
        """Return gamma of a component, an attribute and a record, in words."""
        return {name: format_gamma(value) for name, value in self.ln_gammas().items()}


def describe_approval(decision: Decision) -> dict[str, Any]:
    """Return an approval for outsiders; one that is signed can be checked with its key."""
    found: dict[str, Any] = {
        "by": decision.person.name,
        "name": decision.shown or "",
        "at": f"{decision.happened:%Y-%m-%d}",
    }
    if decision.signed is not None:
        statement, signature = decision.signed.statement, decision.signed.signature
        found["signed"] = {
            "statement": dict(statement),
            "public": signature.public,
            "ed25519": signature.ed25519,
        }
    return found


def read_summary(store: Store, release_id: str) -> Summary:
    """Return everything that the warehouse holds of a release."""
    with store.transaction(f"show {release_id}") as db:
        return summarize_run(db, get_run(db, release_id))


def summarize_run(db: Transaction, run: Run) -> Summary:
    """Return everything that the warehouse holds of a run, within a transaction."""
    release_id = run.release_id
    audited = find_facts(db, release_id, AuditedFacts)
    verdict = find_verdict(db, release_id)
    latest = find_latest_version(db, run.dataset)
    sites = find_facts(db, release_id, SitesFacts)
    # The centre of a common release has no records: each site counts its own in its ledger.
    entry = None if sites else find_entry(db, release_id)
    is_review = verdict is not None and verdict.outcome == "REVIEW"
    is_pending = run.stage == Stage.AWAITING_REVIEW
    standing = find_standing(db, release_id, verdict) if is_pending else None
    counted = standing.counted if standing else find_counted(db, release_id, verdict)
    return Summary(
        home=db.home.root,
        run=run,
        settings=find_facts(db, release_id, SettingsFacts),
        validated=find_facts(db, release_id, ValidatedFacts),
        sanitized=find_facts(db, release_id, SanitizedFacts),
        report=audited.report if audited else None,
        verdict=verdict,
        folder=version_folder(db.home, run) if run.stage == Stage.PUBLISHED else None,
        ending=find_facts(db, release_id, EndingFacts) or EndingFacts(),
        withdrawal=find_withdrawal(db, release_id) if run.stage == Stage.WITHDRAWN else None,
        latest=latest.number if latest else None,
        decisions=tuple(read_decisions(db, release_id)) if is_review else (),
        standing=standing,
        counted=counted,
        has_keys=bool(read_reviewers(db)),
        sites=sites,
        is_part=belongs_to_common_release(db.home, run.dataset, release_id),
        ledger=format_entry(entry),
        ln_ledger=entry["total"] if entry else None,
    )


def find_counted(db: Transaction, release_id: str, verdict: Verdict | None) -> tuple[Decision, ...]:
    """Return the approvals that counted when a release was published.

    One that had lapsed by then did not count, and one that lapsed since then did.
    """
    published = find_publication_time(db, release_id)
    found = find_standing(db, release_id, verdict, published) if published else None
    return found.counted if found else ()
