"""Anything may happen to a dataset in any order: a release leaves only as its rules say.

The real warehouse is compared with a model that is a few plain variables. The clock and the user
are those of the model; nothing else is replaced but the bytes that leave.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError, Refused
from ppdm_core.model.verdict import Outcome, Review
from tests.support.contexts import open_run
from tests.support.waiting_runs import ANN, BOB, CAT, OWNER, STAGES, Office, Person, staffed
from warehouse.approvals import Choice
from warehouse.audit_results import find_verdict
from warehouse.integrity.history import check_history
from warehouse.publishing.publish import check_approved
from warehouse.stages import ALLOWED, FINISHED, ORDER, Stage

DORA = Person(1004, OWNER.lower())  # has the name that the file gives its owner
LAPSE = timedelta(days=14)
WORK = ORDER[: ORDER.index("audited") + 1]
outcomes = st.sampled_from(["REVIEW", "REVIEW", "REVIEW", "PASS", "FAIL"])
people = st.sampled_from([ANN, BOB, CAT, DORA])


@dataclass
class Model:
    """One release as its rules see it."""

    stage: str = "created"
    outcome: Outcome | None = None
    makers: set[int] = field(default_factory=set)
    approved: dict[int, Any] = field(default_factory=dict)  # uid -> when

    def may_leave(self, now: Any, needed: int) -> bool:
        fresh = [uid for uid, when in self.approved.items() if now - when <= LAPSE]
        return self.outcome == "PASS" or (self.outcome == "REVIEW" and len(fresh) >= needed)


class Dataset(RuleBasedStateMachine):
    seen: ClassVar[Counter[tuple[str, int]]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.open = ExitStack()
        self.runs: dict[str, Model] = {}
        self.current = ""

    @initialize(needed=st.sampled_from([1, 2]), outcome=outcomes)
    def start(self, needed: int, outcome: Outcome) -> None:
        folder = Path(tempfile.mkdtemp(prefix="ppdm-machine-"))
        self.open.callback(shutil.rmtree, folder)
        self.office = self.open.enter_context(staffed(Office(folder, Review(needed))))
        self.needed = needed
        self.release(ANN, other=False)
        self.work("judged", outcome)

    def teardown(self) -> None:
        if self.runs:
            with self.office.store.transaction() as db:
                rows = dict(db.execute("select release_id, stage from meta.run").fetchall())
                check_history(db)
            assert rows == {name: model.stage for name, model in self.runs.items()}
        self.open.close()

    @property
    def model(self) -> Model:
        return self.runs[self.current]

    @rule(person=people, other=st.sampled_from([False, False, True]))
    def release(self, person: Person, other: bool) -> None:
        """The file is released, as it was or with other settings."""
        self.office.person = person
        self.office.file += "+" if other else ""
        before, last = self.runs.get(self.current), self.current
        self.current = self.office.begin().release_id
        if before is not None and before.stage not in FINISHED and other:
            before.stage = "abandoned"
        is_continued = before is not None and before.stage not in FINISHED
        assert (self.current == last) == is_continued
        model = self.runs.setdefault(self.current, Model())
        if model.stage != "awaiting_review":
            model.makers |= {person.uid or 0, DORA.uid or 0}

    @precondition(lambda self: self.model.stage in WORK)
    @rule(
        until=st.sampled_from([*WORK, *["judged"] * 16]),
        outcome=outcomes,
    )
    def work(self, until: str, outcome: Outcome) -> None:
        """Take the steps up to a verdict, unless the process is killed before."""
        model, run = self.model, open_run(self.office.context, self.current)[1]
        last = WORK[-1] if until == "judged" else until
        steps = WORK[WORK.index(model.stage) + 1 : WORK.index(last) + 1]
        self.office.walk(run, *steps)
        model.stage = steps[-1] if steps else model.stage
        if until == "judged":
            self.office.judge(run, outcome)
            model.outcome, model.stage = outcome, STAGES[outcome]

    @rule(
        person=st.sampled_from([BOB, CAT, BOB, CAT, ANN, DORA]),
        choice=st.sampled_from([*["approve"] * 7, "reject"]),
        days=st.sampled_from([0, 0, 0, 8, 15]),
    )
    def decide(self, person: Person, choice: Choice, days: int) -> None:
        """A person decides, and perhaps much later the release is published."""
        self.office.later(seconds=1)
        model, uid = self.model, person.uid or 0
        expected: type[PpdmError] | None = None
        if model.stage != "awaiting_review":
            expected = BadInput
        elif choice == "approve" and uid in model.makers:
            expected = Refused
        if expected is not None:
            with pytest.raises(expected):
                self.office.decide(person, choice, release_id=self.current)
        else:
            self.office.decide(person, choice, release_id=self.current)
            if choice == "reject":
                model.stage = "refused"
            else:
                model.approved[uid] = self.office.time
        self.office.later(days=days)
        self.try_publishing()

    def try_publishing(self) -> None:
        """Check what publishing checks before it records the version."""
        model, before = self.model, self.model.stage
        may_leave = model.may_leave(self.office.time, self.needed)
        run = open_run(self.office.context, self.current)[1]
        request: Any = SimpleNamespace(run=run, review=self.office.review)
        try:
            with self.office.store.advance(run, Stage.PUBLISHED) as change:
                verdict = find_verdict(change.db, self.current)
                if verdict is None:
                    raise Refused("It has no verdict.")
                check_approved(change.db, verdict, request)
                row = [run.dataset, run.number, self.current, "d", "m", self.office.time]
                change.db.execute("insert into published.version values (?, ?, ?, ?, ?, ?)", row)
                change.detail.update(data="d", manifest="m")
        except PpdmError:
            assert not (before in ("approved", "awaiting_review") and may_leave)
            self.seen[f"stayed {before}", len(model.approved)] += 1
            return
        assert may_leave and "published" in ALLOWED[before]
        self.seen[f"left {before}", len(model.approved)] += 1
        model.stage = "published"

    @precondition(lambda self: self.model.stage == "awaiting_review")
    @rule()
    def set_the_clock_back(self) -> None:
        """An hour before the last thing that was written."""
        now = self.office.time
        with self.office.store.transaction() as db:
            ((last,),) = db.execute("select max(happened) from meta.event").fetchall()
        self.office.time = last - timedelta(hours=1)
        with pytest.raises(MachineTrouble):
            self.office.standing(self.current)
        self.office.time = now


def check(examples: int, steps: int, *, derandomize: bool) -> None:
    run_state_machine_as_test(
        Dataset,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            database=None,
            deadline=None,
            phases=(Phase.generate,),  # a found bug is reported at once, not shrunk first
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_stages_random_steps_follow_rules() -> None:
    check(8, 20, derandomize=True)


def test_stages_second_of_two_approvals_publishes() -> None:
    """The same steps, chosen: random ones reach this rarely."""
    Dataset.seen.clear()
    machine = Dataset()
    machine.start(needed=2, outcome="REVIEW")
    machine.decide(person=BOB, choice="approve", days=0)
    machine.decide(person=CAT, choice="approve", days=0)
    machine.teardown()
    assert Dataset.seen == {("stayed awaiting_review", 1): 1, ("left awaiting_review", 2): 1}


@pytest.mark.exhaustive
def test_stages_many_random_steps_follow_rules() -> None:
    check(60, 30, derandomize=False)
