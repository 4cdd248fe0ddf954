"""The last step: through the door, or not; and then told to MLflow and Prefect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput, Refused, Undecided
from ppdm_core.numerics.scaling import Scaling
from tasks.audit.attack_inputs import numbered
from tasks.context import Plan, code_version
from tasks.ingest.task import raw_table, validated_table
from tasks.notify import mlflow_log as tracking
from tasks.notify.mlflow_entry import ReleaseEntry
from tasks.notify.prefect_artifacts import show_rejection, show_release
from tasks.progress import log_progress
from tasks.publish.card import card_text
from tasks.publish.manifest_body import manifest_body
from tasks.redaction import shielded
from tasks.release_summary import Summary, read_summary
from tasks.stage_facts import public_from_dict, schema_from_dict
from warehouse.checkpoints import checkpoint
from warehouse.database import Run, Store, keep_fact
from warehouse.publishing import publish as door
from warehouse.publishing.leak_scan import Answered, Expected
from warehouse.publishing.manifest import NAME, file_digest, verify
from warehouse.publishing.publish import ORDER
from warehouse.runs import tidy
from warehouse.sql import ROW, quoted
from warehouse.stages import FINISHED, Stage


@task(name="leave", cache_policy=NO_CACHE)
@shielded
def leave(plan: Plan, release_id: str, dry_run: bool) -> Stage:
    """The stage that the release ends in."""
    log_progress("at the door")
    store, run = plan.run(release_id)
    if run.stage in FINISHED:
        return run.stage
    summary = read_summary(store, release_id)
    assert summary.sanitized is not None
    with store.transaction(release_id) as db:
        latest = door.latest_version(db, plan.dataset)
    if dry_run:  # what waits is left to those who decide
        is_undecided = run.stage == Stage.AWAITING_REVIEW
        return run.stage if is_undecided else end(store, run, Stage.DRY_RUN_PASSED)
    same = latest is not None and latest[2] == summary.sanitized["data_digest"]
    if latest and same and is_intact(store, plan.dataset, latest):
        return end(store, run, Stage.NO_CHANGE, same_as=latest[1])
    is_undecided = summary.standing is None or summary.standing.missing > 0
    if run.stage == Stage.AWAITING_REVIEW and is_undecided:
        return run.stage
    try:
        door.publish(store, parcel(plan, store, summary))
    except Undecided:  # an approval lapsed just now
        return Stage.AWAITING_REVIEW
    except Refused as refusal:
        return end(store, run, Stage.REFUSED, at_the_door=refusal.message)
    return Stage.PUBLISHED


def is_intact(store: Store, dataset: str, version: tuple[Any, ...]) -> bool:
    """A latest version that was lost or altered is published again, as a new one."""
    number, _, _, manifest_digest = version
    folder = store.home.published / dataset / f"{number:04d}"
    try:
        verify(folder)
    except (BadInput, Refused):
        return False
    return file_digest(folder / NAME) == manifest_digest


def end(store: Store, run: Run, stage: Stage, **detail: str) -> Stage:
    with store.advance(run, stage, **detail) as change:
        if detail:
            keep_fact(change.db, run, "ending", detail)
    return stage


@task(name="tell", task_run_name="tell {release_id}", cache_policy=NO_CACHE)
@shielded
def tell(plan: Plan, release_id: str) -> str:
    """MLflow and Prefect are views: a release is what it is even if they cannot be told.

    Returns what became of it, in words.
    """
    log_progress("logging to MLflow")
    store = plan.store()
    summary = read_summary(store, release_id)
    assert summary.report and summary.guarantee and summary.verdict
    entry = ReleaseEntry(
        dataset=plan.dataset,
        number=summary.run.number,
        release_id=release_id,
        started=summary.run.started,
        outcome=summary.run.stage,
        closing=summary.closing(),
        method=plan.method,
        parameters=plan.parameters,
        policy=plan.policy,
        verdict=summary.verdict,
        scores=summary.report.scores,
        guarantee=summary.guarantee,
        code_version=summary.run.code_version,
        flow_run_id=summary.run.flow_run_id,
        card=card_text(plan, summary),
    )
    logged = tracking.log_release(Path(plan.home), entry, log_progress)
    if logged is None:
        log_progress("MLflow could not be reached; the release does not depend on it")
    page = tracking.page_of(Path(plan.home), logged) if logged else None
    show_release(plan, summary, page)
    checkpoint("views told")
    tidy(store, plan.dataset, plan.keep_raw)
    return summary.closing()


@task(name="tell rejected", task_run_name="tell rejected", cache_policy=NO_CACHE)
@shielded
def tell_rejected(dataset: str, method: str, error: BadInput) -> None:
    """Bad input is told where refusals are: a schedule has no console."""
    show_rejection(dataset, method, error)


def parcel(plan: Plan, store: Store, summary: Summary) -> door.Parcel:
    assert summary.sanitized is not None and summary.validated is not None
    return door.Parcel(
        run=summary.run,
        sink=plan.sink,
        policy_digest=plan.policy.digest,
        review=plan.policy.review,
        code_version=code_version(),
        expected=expected(plan, store, summary),
        people=people_table(plan, summary),
        card=card_text(plan, summary),
        manifest=manifest_body(plan, store, summary),
    )


def people_table(plan: Plan, summary: Summary) -> str | None:
    """Without stable ids, or where rows belong to nobody, later releases cannot be compared."""
    facts = summary.sanitized
    assert facts is not None
    return validated_table(summary.run) if plan.record_id and facts["row_aligned"] else None


def expected(plan: Plan, store: Store, summary: Summary) -> Expected:
    """What the door compares the leaving bytes with."""
    facts, valid, run = summary.sanitized, summary.validated, summary.run
    assert facts is not None and valid is not None
    names = schema_from_dict(valid["schema"]).names
    public = public_from_dict(facts["public"])
    answered = tuple(response.column.name for response in public.responses)
    scaling = Scaling.from_dict(facts["scaling"])
    with store.transaction(run.release_id) as db:
        _, X = numbered(db, names, validated_table(run))
        _, codes = numbered(db, answered, validated_table(run))
        order = db.execute(
            f"select {ROW} from {door.candidate_table(run)} order by {ORDER}, {ROW}"
        ).fetchnumpy()[ROW]
        ids = [numeric_ids(db, run, c.name) for c in plan.columns if c.role == "identifier"]
    # Validated rows are numbered from 0 without gaps.
    X, C = X[order], codes[order].astype(np.int32)
    on_grid = public.space != "original"
    return Expected(
        columns=public.columns,
        label=plan.label.name if plan.label else None,
        categories=plan.label.categories if plan.label else (),
        rows=facts["released"],
        atom=facts["atom"],
        draws=len(public.columns) if public.scales is None else len(public.scales),
        grid=public.grid if on_grid else None,
        forbidden=frozenset(c.name for c in plan.columns if c.role in ("identifier", "exclude")),
        originals=(X, (X - scaling.offset) / scaling.unit),
        others=tuple(ids),
        same_columns=facts["same_columns"],
        source_order=np.asarray(order, dtype=np.float64),
        answered=tuple(map(Answered, public.responses, C.T)),
    )


def numeric_ids(db: Any, run: Run, name: str) -> np.ndarray:
    query = f"select try_cast({quoted(name)} as double) as id from {raw_table(run)}"
    ids = np.ma.filled(db.execute(query).fetchnumpy()["id"].astype(np.float64), np.nan)
    return ids[np.isfinite(ids)]
