"""A release as people read it, from the warehouse alone: for the console, the card and MLflow."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding, Verdict
from ppdm_core.numerics.amplification import in_words
from tasks.judge.ledger_charge import told_entry
from tasks.stage_facts import guarantee_from_dict, report_from_dict
from warehouse.approvals import Decision, Standing, decisions, standing_of
from warehouse.database import Run, Store, first, read_fact
from warehouse.ledger.entries import entry_of
from warehouse.publishing.publish import latest_version, read_verdict
from warehouse.runs import must_find, version_folder
from warehouse.stages import Stage

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, eq=False)
class Summary:
    home: Path
    run: Run
    sanitized: dict[str, Any] | None
    validated: dict[str, Any] | None
    guarantee: Guarantee | None
    report: AuditReport | None
    verdict: Verdict | None
    folder: Path | None  # where it was published
    ending: dict[str, str]  # what the last step had to say: refused at the door, same as another
    latest: int | None  # number of the newest published version
    decisions: tuple[Decision, ...] = ()
    standing: Standing | None = None  # of what waits
    counted: tuple[Decision, ...] = ()  # approvals that count now, or did at the door
    ledger: dict[str, Any] | None = None  # for outsiders

    @property
    def method(self) -> str:
        return str(self.sanitized["method"]) if self.sanitized else "none"

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Why it was refused: by the gate, by somebody, or after a PASS at the door."""
        at_the_door = self.ending.get("at_the_door")
        if at_the_door:
            return (Finding("door", "FAIL", at_the_door),)
        rejected_by = self.ending.get("rejected_by")
        if rejected_by:
            return (Finding("decision", "FAIL", f"{rejected_by} rejected it."),)
        return self.verdict.failures if self.verdict else ()

    @property
    def is_undecided(self) -> bool:
        """People must look: it waits, or a dry run would have."""
        is_review = self.verdict is not None and self.verdict.outcome == "REVIEW"
        stage = self.run.stage
        return stage == Stage.AWAITING_REVIEW or (is_review and stage == Stage.DRY_RUN_PASSED)

    @property
    def self_test(self) -> dict[str, list[str]] | None:
        """For outsiders."""
        result = self.report.self_test if self.report else None
        return result.told() if result else None

    @property
    def approvals(self) -> list[dict[str, str]] | None:
        """For outsiders: by whom and on which day, not why."""
        return [
            {"by": one.person.name, "name": one.shown or "", "at": f"{one.happened:%Y-%m-%d}"}
            for one in self.counted
        ] or None

    def closing(self) -> str:
        """What became of it, in a sentence or two."""
        name, stage = self.run.release_id, self.run.stage
        if stage == Stage.PUBLISHED:
            return f"{name} was approved and published as version {self.run.number:04d}."
        if stage == Stage.NO_CHANGE:
            return f"{name} has the same bytes as version {self.latest:04d}, which stays."
        if stage == Stage.DRY_RUN_PASSED and not self.is_undecided:
            return f"{name} was approved in a dry run; nothing was published."
        if stage == Stage.DRY_RUN_PASSED:
            return f"{name} would wait for a decision; nothing was published in a dry run."
        stays = "" if self.latest is None else f"; version {self.latest:04d} stays the latest"
        why = f" {self.refusals[0].why}" if self.refusals else ""
        if stage == Stage.AWAITING_REVIEW:
            return f"{name} waits for a decision and nothing was published{stays}.{why}"
        return f"{name} was refused and nothing was published{stays}.{why}"

    def gammas(self) -> dict[str, str]:
        if self.guarantee is None:
            return {}
        g = self.guarantee
        figures = {"component": g.ln_component, "attribute": g.ln_attribute, "record": g.ln_record}
        return {name: in_words(value) for name, value in figures.items()}

    def as_dict(self) -> dict[str, Any]:
        return {
            "release_id": self.run.release_id,
            "dataset": self.run.dataset,
            "version": f"{self.run.number:04d}" if self.folder else None,
            "stage": self.run.stage,
            "method": self.method,
            "verdict": self.verdict.outcome if self.verdict else None,
            "approvals": self.approvals or [],
            "approvals_missing": self.standing.missing if self.standing else 0,
            "gammas": self.gammas(),
            "guarantee": self.guarantee.kind if self.guarantee else None,
            "findings": [
                asdict(finding) for finding in (self.verdict.findings if self.verdict else ())
            ],
            "published": str(self.folder) if self.folder else None,
        }


def read_summary(store: Store, release_id: str) -> Summary:
    with store.transaction(f"show {release_id}") as db:
        run = must_find(db, release_id)
        sanitized = read_fact(db, release_id, "sanitized")
        validated = read_fact(db, release_id, "validated")
        report = read_fact(db, release_id, "report")
        ending = read_fact(db, release_id, "ending")
        verdict = read_verdict(db, release_id)
        latest = latest_version(db, run.dataset)
        entry = entry_of(db, release_id)
        is_review = verdict is not None and verdict.outcome == "REVIEW"
        made = decisions(db, release_id) if is_review else []
        is_undecided = run.stage == Stage.AWAITING_REVIEW
        standing = standing_of(db, release_id, verdict) if is_undecided else None
        counted = standing.counted if standing else opened_by(db, release_id, verdict)
    folder = version_folder(store.home, run) if run.stage == Stage.PUBLISHED else None
    return Summary(
        home=store.home.root,
        run=run,
        sanitized=sanitized,
        validated=validated,
        guarantee=guarantee_from_dict(sanitized["guarantee"]) if sanitized else None,
        report=report_from_dict(report) if report else None,
        verdict=verdict,
        folder=folder,
        ending=ending or {},
        latest=latest[0] if latest else None,
        decisions=tuple(made),
        standing=standing,
        counted=counted,
        ledger=told_entry(entry),
    )


def opened_by(
    db: duckdb.DuckDBPyConnection, release_id: str, verdict: Verdict | None
) -> tuple[Decision, ...]:
    """Approvals that stood when it was published: one that had lapsed by then opened no door, and
    one that lapsed since then did."""
    row = first(db, "select happened from published.version where release_id = ?", [release_id])
    found = standing_of(db, release_id, verdict, row[0]) if row else None
    return found.counted if found else ()
