"""Nothing that a verdict stands on can be swapped: records, ids, files, draws, charges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding, Outcome, Verdict
from tasks.audit.attack_inputs import make_job, read_inputs
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw
from tasks.judge import task as judge_task
from tasks.judge.task import judge
from tasks.sanitize.task import draw_candidate
from tests.support.contexts import open_run, write_unchecked
from tests.support.stewards import NUMERIC, Steward, limits, numbers
from warehouse.columns import Column
from warehouse.database import Run, Store, get_run
from warehouse.stage_facts import AuditedFacts, store_facts
from warehouse.stages import Stage

WITH_NOTES = (
    Column("id", "identifier"),
    Column("x", **NUMERIC),
    Column("y", **NUMERIC),
    Column("notes", "exclude"),
    Column("other_id", "identifier"),
)


@pytest.fixture
def steward(tmp_path: Path) -> Steward:
    rows = {name: (*row, "old", f"o{name}") for name, row in numbers().items()}
    return Steward(tmp_path, rows, WITH_NOTES)


def sanitized(context: ReleaseContext) -> tuple[Store, Run]:
    """Everything is ready for the audit."""
    release_id = begin_release.fn(context)
    load_raw.fn(context, release_id)
    store, run = open_run(context, release_id)
    write_unchecked(context, release_id)
    draw_candidate.fn(context, release_id)
    return store, run


def audited(context: ReleaseContext) -> tuple[Store, Run]:
    store, run = sanitized(context)
    with store.advance(run, Stage.AUDITED) as change:
        store_facts(change.db, run, AuditedFacts(AuditReport(())))
    return store, run


def edit(store: Store, statement: str) -> None:
    with store.transaction() as db:
        db.execute(statement)


def data_and_shadow(context: ReleaseContext) -> tuple[Any, Any]:
    """Return the digest of the records, and the rows of a shadow draw in any order."""
    store, run = sanitized(context)
    with store.transaction() as db:
        inputs = read_inputs(db, context, run, store.home.work(run.release_id))
    (shadow,) = make_job(context, run, inputs).shadows.shadows
    rows = [tuple(row) for block in shadow.rows.blocks() for row in block.X.tolist()]
    store.home.clear_work(run.release_id)
    return inputs.data_digest, sorted(rows)


@pytest.mark.slow
def test_shadow_draws_unused_columns_changed_same_draws(
    steward: Steward,
) -> None:
    first = data_and_shadow(steward.build_context())
    steward.rows = {name: (x, y, "new", o) for name, (x, y, _, o) in steward.rows.items()}
    assert data_and_shadow(steward.build_context()) == first
    steward.rows = dict(reversed(steward.rows.items()))
    assert data_and_shadow(steward.build_context()) == first
    steward.rows["p3"] = (0.25, 0.75, "new", "op3")
    assert data_and_shadow(steward.build_context()) != first


@pytest.mark.extended
def test_validate_other_record_id_bad_input(steward: Steward) -> None:
    steward.release()
    with pytest.raises(BadInput, match="knew records by 'id', not by 'other_id'"):
        steward.release(record_id="other_id")
    steward.release(record_id=None)  # charges all records, which is safe
    with pytest.raises(BadInput, match="knew records by 'id'"):
        steward.release(record_id="other_id")


@pytest.mark.extended
@pytest.mark.parametrize("changes", [{"file_digest": "another"}, {"dataset": "others"}])
def test_judge_run_of_another_file_refused(steward: Steward, changes: dict[str, str]) -> None:
    context = steward.build_context()
    store, run = audited(context)
    with pytest.raises(Refused, match="begun by another release file"):
        judge.fn(replace(context, **changes), run.release_id)
    with store.transaction() as db:
        assert db.execute("select * from ledger.entry").fetchall() == []


@pytest.mark.extended
def test_judge_edited_draws_refused(steward: Steward) -> None:
    steward.policy = replace(steward.policy, limits=limits(product=2.0))
    context = steward.build_context()
    store, run = audited(context)
    edit(store, f'update sanitized."{run.table}_draws" set ln_gamma = 0')
    with pytest.raises(Refused, match="stored draws of people-0001 were changed"):
        judge.fn(context, run.release_id)


@pytest.mark.extended
def test_judge_deleted_charges_refused(steward: Steward) -> None:
    steward.release()
    steward.parameters = {"b": 0.6}
    context = steward.build_context()
    store, run = audited(context)
    edit(store, "create table main.aside as from ledger.charge")
    edit(store, "delete from ledger.charge")
    with pytest.raises(Refused, match=r"charges of people-0001 in the ledger changed"):
        judge.fn(context, run.release_id)
    edit(store, "insert into ledger.charge from main.aside")
    judge.fn(context, run.release_id)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("update meta.run set source_digest = 'x'", "is not the one that its events record"),
        ("update meta.run set file_digest = 'x'", "is not the one that its events record"),
        ("update meta.fitted set state = '{}'", "learned from its records was changed"),
    ],
)
def test_release_edited_earlier_run_refused(steward: Steward, statement: str, why: str) -> None:
    steward.method, steward.parameters = "pca_laplace", {"components": 1, "b": 0.5}
    steward.parameters |= {"basis": "private"}
    steward.release()
    edit(steward.store, f"{statement} where release_id = 'people-0001'")
    steward.rows["p3"] = (0.25, 0.75, "new", "op3")
    with pytest.raises(Refused, match=why):
        steward.release()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("outcome", "stage"),
    [("PASS", Stage.PART_JUDGED), ("REVIEW", Stage.PART_JUDGED), ("FAIL", Stage.REFUSED)],
)
def test_judge_part_of_a_common_release_ends_it(
    steward: Steward, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, stage: Stage
) -> None:
    verdict = Verdict(outcome, (Finding("any", outcome, "As the test needs it."),), "", "", "")
    monkeypatch.setattr(judge_task, "reach_verdict", lambda *given: verdict)
    context = steward.build_context()
    store, run = audited(context)
    judge.fn(context, run.release_id, is_part=True)
    with store.transaction() as db:
        assert get_run(db, run.release_id).stage == stage
