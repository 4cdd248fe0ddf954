"""Runs that wait for a decision, made without an audit, and persons who decide without accounts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tasks.judge.decision
import warehouse.approvals
import warehouse.integrity.seals
from ppdm_core.model.policy import Policy
from ppdm_core.model.verdict import Finding, Outcome, Review, Verdict
from tasks.context import ReleaseContext
from tests.support.contexts import make_context, start_run
from warehouse.approvals import Choice, Person, Standing, count_approvals
from warehouse.audit_results import find_verdict
from warehouse.columns import Source
from warehouse.database import Run, Store, get_run
from warehouse.home import Home
from warehouse.ledger.entries import LedgerScope, store_entry
from warehouse.sources import SOURCES
from warehouse.stages import Stage

ANN, BOB, CAT = Person(1001, "ann"), Person(1002, "bob"), Person(1003, "cat")
OWNER, CODE = "Dora", "c" * 16
STAGES: dict[Outcome, Stage] = {
    "PASS": Stage.APPROVED,
    "REVIEW": Stage.AWAITING_REVIEW,
    "FAIL": Stage.REFUSED,
}
WHY: dict[Outcome, str] = {"PASS": "Fine.", "REVIEW": "Too few.", "FAIL": "Broken."}


@dataclass
class Office:
    """A home, the person who decides, and the clock."""

    folder: Path
    review: Review = field(default_factory=Review)
    person: Person = ANN
    file: str = "f"  # digest of the release file
    time: datetime = datetime(2030, 1, 1, tzinfo=UTC)

    def __post_init__(self) -> None:
        home = Home(self.folder / "home")
        home.create()
        self.store = Store(home)
        self.table = self.folder / "t.csv"
        self.table.write_text("a,b\n1,2\n")

    @property
    def context(self) -> ReleaseContext:
        policy = Policy(required=(), limits={}, review=self.review)
        file = json.dumps({"review": asdict(self.review)})
        return make_context(
            self.folder,
            file_digest=self.file,
            dataset="t",
            owner=OWNER,
            audience="all",
            columns=(),
            method="m",
            parameters={},
            policy=policy,
            record_id=None,
            file=file,
        )

    def begin(self) -> Run:
        source = Source("csv", str(self.table))
        return start_run(
            self.store,
            dataset="t",
            owner=OWNER,
            source_digest=SOURCES["csv"].digest(source),
            file_digest=self.file,
            code_version=CODE,
            pid=os.getpid(),
            flow_run_id=None,
        )[0]

    def walk(self, run: Run, *stages: str) -> None:
        for stage in stages:
            with self.store.advance(run, Stage(stage)):
                pass

    def judge(self, run: Run, outcome: Outcome) -> None:
        """Store a verdict as the gate does."""
        verdict = Verdict(
            outcome, (Finding("a", outcome, WHY[outcome]),), self.context.policy.digest, "d", CODE
        )
        with self.store.advance(run, STAGES[outcome]) as change:
            row = {**verdict.as_dict(), "findings": json.dumps(verdict.as_dict()["findings"])}
            when = warehouse.integrity.seals.monotonic_now(change.db)
            change.insert_sealed(
                "audit.verdict", {"release_id": run.release_id, **row, "happened": when}
            )
            terms = {"limits": {}, "waived": [], "collusion_waiver": ""}
            scope = LedgerScope("t", "all", "m", terms=terms)
            store_entry(change, run, scope, None, "refused by the ledger")
            if outcome == "REVIEW":
                kept = {"release_id": run.release_id, "file": self.context.file}
                change.insert_sealed("audit.waiting", kept)

    def waiting(self) -> Run:
        run = self.begin()
        self.walk(run, "raw", "validated", "sanitized", "audited")
        self.judge(run, "REVIEW")
        return run

    def decide(
        self,
        person: Person,
        choice: Choice = "approve",
        note: str = "I looked.",
        release_id: str = "t-0001",
    ) -> None:
        self.person = person
        tasks.judge.decision.record_decision(self.context, release_id, choice, note)

    def later(self, **span: float) -> None:
        self.time += timedelta(**span)

    def standing(self, release_id: str = "t-0001") -> Standing:
        with self.store.transaction() as db:
            verdict = find_verdict(db, release_id)
            assert verdict is not None
            return count_approvals(db, release_id, verdict, self.review)

    def stage(self, release_id: str = "t-0001") -> str:
        with self.store.transaction() as db:
            return get_run(db, release_id).stage


@contextmanager
def staffed(office: Office) -> Iterator[Office]:
    """Replace the user and the clock of the process by those of the office."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warehouse.approvals, "current_user", lambda: office.person)
        patch.setattr(warehouse.integrity.seals, "now", lambda: office.time)
        patch.setattr(tasks.judge.decision, "compute_code_version", lambda: CODE)
        yield office
