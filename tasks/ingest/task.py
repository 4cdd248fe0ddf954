"""The steps from the source file to the validated table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext
from tasks.dataset_lock import clear_dead_work
from tasks.ingest import expectations
from tasks.ingest.dead_runs import end_dead_runs
from tasks.ingest.record_ids import check_record_id
from tasks.ingest.source_copy import copy_source, open_copy
from tasks.ingest.stored_bounds import apply_published_bounds, mark_bounds_from_data
from tasks.judge.ledger_charge import name_records
from tasks.progress import Step, log_progress, start_step
from tasks.publish.sinks import check_targets
from tasks.redaction import redact_errors
from tasks.release_space import ReleaseShape, check_space, count_released
from tasks.signing_key import AUTHOR_KEY
from warehouse.checkpoints import checkpoint
from warehouse.code_version import compute_code_version
from warehouse.column_survey import is_numeric_feature, list_survey_figures
from warehouse.columns import Column
from warehouse.database import Run
from warehouse.derived_columns import add_derived_columns
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.integrity.home_key import home_key
from warehouse.publishing.deliveries import complete_deliveries, list_pending_deliveries
from warehouse.publishing.publish import find_latest_version, repair_latest
from warehouse.publishing.withdraw import complete_withdrawals
from warehouse.raw_profile import REPEATED, ROWS_LEFT, check_columns, profile
from warehouse.runs import (
    begin_run,
    drop_old_tables,
    reject_run,
    remove_files,
)
from warehouse.same_data.cell_digests import CellDigests
from warehouse.same_data.sketches import store_sketch
from warehouse.sources import SOURCES
from warehouse.sql import column_types, count_rows
from warehouse.stage_facts import SettingsFacts, ValidatedFacts, store_facts
from warehouse.stages import Stage, is_past
from warehouse.tables import raw_table, validated_table
from warehouse.transaction import Transaction
from warehouse.validated_table import write_validated


@task(name="begin release", cache_policy=NO_CACHE)
@redact_errors
def begin_release(context: ReleaseContext, flow_run_id: str | None = None) -> str:
    """Return the id of the release: a new one, or that of a dead run of the same release.

    ``flow_run_id`` is that of the release flow; to ask Prefect for it takes three requests.
    """
    store = context.open_store()
    complete_withdrawals(store)
    digest = copy_source(store.home, context.dataset, context.source)
    code_version = compute_code_version()
    with store.transaction(f"{context.dataset} begins") as db:
        run, earlier = begin_run(
            db,
            dataset=context.dataset,
            owner=context.owner,
            source_digest=digest,
            file_digest=context.file_digest,
            code_version=code_version,
            pid=os.getpid(),
            flow_run_id=flow_run_id,
            author_key=AUTHOR_KEY.get(),
        )
        latest = find_latest_version(db, context.dataset)
        has_pending = bool(list_pending_deliveries(db, context.dataset))
        ended = drop_old_tables(db, context.dataset, context.keep_raw)
    checkpoint("run begun")
    end_dead_runs(earlier)
    if repair_latest(store.home, context.dataset, latest):
        log_progress("`latest` did not point to the newest version, and does again")
    remove_files(store.home, context.dataset, ended)
    clear_dead_work(store.home, context.dataset)
    if has_pending:
        complete_deliveries(store, context.dataset)
    with reject_bad_input(context, run.release_id):
        check_targets(store, context, run)
    return run.release_id


@task(name="load raw table", cache_policy=NO_CACHE)
@redact_errors
def load_raw(context: ReleaseContext, release_id: str) -> None:
    """Load the source into the raw table of the run."""
    start_step(Step.READ)
    store = context.open_store()
    with context.open_run(release_id) as (_, run):
        if is_past(run.stage, Stage.RAW):
            return store.home.clear_work(context.dataset)
    table = raw_table(run)
    with (
        reject_bad_input(context, release_id),
        open_copy(store.home, context.dataset, context.source) as source,
        store.advance(run, Stage.RAW) as change,
    ):
        SOURCES[source.kind].load(change.db, source, table)
        add_derived_columns(change.db, table, context.columns, context.source.name)
        change.detail["rows"] = count_rows(change.db, table)


@task(name="validate", cache_policy=NO_CACHE)
@redact_errors
def validate(context: ReleaseContext, release_id: str) -> None:
    """Check the raw table and write the validated one."""
    start_step(Step.VALIDATE)
    with reject_bad_input(context, release_id) as detail:
        with context.open_run(release_id) as (db, run):
            if is_past(run.stage, Stage.VALIDATED):
                return
            survey = survey_raw(db, context, run)
        check_survey(context, survey, detail)
        check_fits(context, survey)
        write_records(context, run, survey, **detail)


@dataclass(frozen=True)
class RawSurvey:
    """What one pass over the raw table found."""

    profile: Mapping[str, float | int]  # counts, which Great Expectations judges
    figures: Mapping[str, Any]  # the same, with bounds and medians, which are cells
    columns: tuple[Column, ...]  # with the bounds that earlier releases published


def survey_raw(db: Transaction, context: ReleaseContext, run: Run) -> RawSurvey:
    """Read everything of the raw table that its checks and the validated table need."""
    table = raw_table(run)
    check_columns(list(column_types(db, table)), context.columns, context.source.name)
    columns = apply_published_bounds(db, context.dataset, context.columns)
    cells = list_survey_figures(columns)
    figures = profile(
        db, table, context.columns, context.record_id, context.expectations, more=cells
    )
    counts = {key: value for key, value in figures.items() if key not in cells}
    return RawSurvey(counts, figures, columns)


def check_survey(context: ReleaseContext, survey: RawSurvey, detail: dict[str, Any]) -> None:
    """Check the profile of the raw table with Great Expectations, which receives no cell.

    ``detail`` gets which expectations of the release file hold, without the observed values.
    """
    file, counts = context.source.name, survey.profile
    expectations.check_profile(counts, context.columns, record_id=context.record_id, file=file)
    passed = expectations.judge_expectations(counts, context.expectations)
    detail["expectations"] = [
        {"type": each.type, "column": each.column, "passed": holds}
        for each, holds in zip(context.expectations, passed, strict=True)
    ]
    expectations.check_expectations(context.expectations, passed, file=file)


def check_fits(context: ReleaseContext, survey: RawSurvey) -> None:
    """Check that the rest of the release fits into the memory and on the disk."""
    numeric = [column for column in survey.columns if is_numeric_feature(column)]
    features = sum(column.role == "feature" for column in survey.columns)
    shape = ReleaseShape(
        rows=int(survey.profile[ROWS_LEFT]),
        columns=len(survey.columns),
        numbers=len(numeric),
        codes=features - len(numeric),
        released=count_released(context.make_sanitizer(), len(numeric)),
    )
    check_space(shape, context.policy, context.open_store().home.root, is_new_home=False)


def write_records(context: ReleaseContext, run: Run, survey: RawSurvey, **detail: Any) -> None:
    """Write the validated table and its facts; the event gets ``detail``."""
    # Without a stable id, a key must not depend on the content or the identity of a record:
    # it is the record's place in this one release.
    scope = ("id",) if context.record_id else ("place", str(run.number))
    with context.open_store().advance(run, Stage.VALIDATED, **detail) as change:
        check_record_id(change.db, context)
        noise = dataset_noise(change.db, context.dataset)
        digests = CellDigests(change.db, raw_table(run), context.columns, home_key(change.db))
        validated = write_validated(
            change.db,
            raw_table(run),
            validated_table(run),
            survey.columns,
            survey.figures,
            context.record_id,
            lambda ids: noise.make_record_keys(ids, *scope),
            digests,
        )
        facts = ValidatedFacts(
            n=validated.n,
            data=validated.digest,
            schema=mark_bounds_from_data(validated.schema, context.columns),
            repeated_rows=int(survey.profile[REPEATED]),
            **vars(validated.changes),
        )
        store_facts(change.db, run, facts)
        store_facts(change.db, run, build_settings(context))
        store_sketch(
            change,
            run,
            digests,
            data=facts.data,
            name_accounts=(lambda keys: name_records(keys, noise)) if context.record_id else None,
        )
        change.detail.update(rows=validated.n, dropped=validated.changes.dropped_rows)
        change.detail.update(data=facts.data, record_id=context.record_id)


def build_settings(context: ReleaseContext) -> SettingsFacts:
    """Return what the release file says of owner, audience and policy."""
    return SettingsFacts(context.owner, context.audience, context.policy, context.file)


@contextmanager
def reject_bad_input(
    context: ReleaseContext, release_id: str, *, names_source: bool = True
) -> Iterator[dict[str, Any]]:
    """End the run and drop its tables if the input is bad.

    The error names the source, unless the release file or another party is the cause. What the
    block puts into the yielded dict is stored with the error.
    """
    detail: dict[str, Any] = {}
    try:
        yield detail
    except BadInput as error:
        reject_run(context.open_store(), release_id, {**detail, **error.as_dict()})
        if not names_source:
            raise
        raise error.in_file(context.source.name, only_unnamed=True) from None
