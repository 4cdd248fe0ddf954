"""The steps from the source file to the validated table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.code_version import compute_code_version
from tasks.context import ReleaseContext
from tasks.ingest import expectations
from tasks.ingest.dead_runs import end_dead_runs
from tasks.ingest.stored_bounds import apply_published_bounds, mark_bounds_from_data
from tasks.progress import log_progress
from tasks.redaction import redact_errors
from warehouse.checkpoints import checkpoint
from warehouse.database import Run, Store
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.publishing.publish import repair_latest
from warehouse.raw_profile import check_columns, profile
from warehouse.runs import begin_run, clean_up, list_record_ids, reject_run
from warehouse.sources import SOURCES
from warehouse.sql import KEY, LABEL, column_types, count_rows
from warehouse.stage_facts import ValidatedFacts, store_facts
from warehouse.stages import Stage, is_past
from warehouse.table_digest import content_digest
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
    digest = SOURCES[context.source.kind].digest(context.source)
    run, earlier = begin_run(
        store,
        dataset=context.dataset,
        owner=context.owner,
        source_digest=digest,
        file_digest=context.file_digest,
        code_version=compute_code_version(),
        pid=os.getpid(),
        flow_run_id=flow_run_id,
    )
    checkpoint("run begun")
    end_dead_runs(earlier)
    repair_latest(store, context.dataset)
    clean_up(store, context.dataset, context.keep_raw)
    return run.release_id


@task(name="load raw table", cache_policy=NO_CACHE)
@redact_errors
def load_raw(context: ReleaseContext, release_id: str) -> None:
    """Load the source into the raw table of the run."""
    log_progress("reading the source")
    store, run = context.open_run(release_id)
    if is_past(run.stage, Stage.RAW):
        return
    table = raw_table(run)
    with reject_bad_input(store, run, context), store.advance(run, Stage.RAW) as change:
        SOURCES[context.source.kind].load(change.db, context.source, table)
        if SOURCES[context.source.kind].digest(context.source) != run.source_digest:
            raise MachineTrouble(
                f"{source_name(context)} changed while it was read.",
                file=source_name(context),
                remedy="Run the same release again when no process writes to it.",
            )
        change.detail["rows"] = count_rows(change.db, table)


@task(name="validate", cache_policy=NO_CACHE)
@redact_errors
def validate(context: ReleaseContext, release_id: str) -> None:
    """Check the raw table and write the validated one."""
    log_progress("validating")
    store, run = context.open_run(release_id)
    if is_past(run.stage, Stage.VALIDATED):
        return
    with reject_bad_input(store, run, context) as detail:
        check_raw(context, store, run, detail)
        write_records(context, store, run, **detail)


def check_raw(context: ReleaseContext, store: Store, run: Run, detail: dict[str, Any]) -> None:
    """Check the profile of the raw table with Great Expectations, which receives no cell.

    ``detail`` gets which expectations of the release file hold, without the observed values.
    """
    file = source_name(context)
    with store.transaction(run.release_id) as db:
        names = list(column_types(db, raw_table(run)))
        check_columns(names, context.columns, file)
        counts = profile(
            db, raw_table(run), context.columns, context.record_id, context.expectations
        )
    expectations.check_profile(counts, context.columns, record_id=context.record_id, file=file)
    passed = expectations.judge_expectations(counts, context.expectations)
    detail["expectations"] = [
        {"type": each.type, "column": each.column, "passed": holds}
        for each, holds in zip(context.expectations, passed, strict=True)
    ]
    expectations.check_expectations(context.expectations, passed, file=file)


def write_records(context: ReleaseContext, store: Store, run: Run, **detail: Any) -> None:
    """Write the validated table and its facts; the event gets ``detail``."""
    noise = dataset_noise(store, context.dataset)
    # Without a stable id, a key must not depend on the content or the identity of a record:
    # it is the record's place in this one release.
    scope = ("id",) if context.record_id else ("place", str(run.number))

    def make_keys(ids: Sequence[bytes]) -> list[bytes]:
        return noise.make_record_keys(ids, *scope)

    with store.advance(run, Stage.VALIDATED, **detail) as change:
        check_record_id(change.db, context)
        columns = apply_published_bounds(change.db, context.dataset, context.columns)
        validated = write_validated(
            change.db, raw_table(run), validated_table(run), columns, context.record_id, make_keys
        )
        facts = ValidatedFacts(
            n=validated.n,
            data=digest_records(change.db, run, context),
            schema=mark_bounds_from_data(validated.schema, context.columns),
            clamped=validated.clamped,
            imputed=validated.imputed,
            dropped_rows=validated.dropped_rows,
        )
        store_facts(change.db, run, facts)
        change.detail.update(rows=validated.n, dropped=validated.dropped_rows)
        change.detail.update(data=facts.data, record_id=context.record_id)


def digest_records(db: Transaction, run: Run, context: ReleaseContext) -> str:
    """Return the digest of all columns that a release can use, and of no others.

    Excluded columns and the format of the source do not change it. Without ids the keys, which are
    places in this one run, are left out.
    """
    features = [column.name for column in context.columns if column.role == "feature"]
    keys = [KEY] if context.record_id else []
    return content_digest(db, validated_table(run), [*keys, *features, LABEL])


def check_record_id(db: Transaction, context: ReleaseContext) -> None:
    """Check that earlier releases used the same record id, by which the ledger knows records."""
    known = list_record_ids(db, context.dataset)
    if context.record_id and known and context.record_id not in known:
        raise BadInput(
            f"Earlier releases of '{context.dataset}' knew records by '{min(known)}', not by "
            f"'{context.record_id}': the ledger could not recognise them.",
            column=context.record_id,
            remedy="Keep the record_id; give the column its old name if it was renamed.",
        )


@contextmanager
def reject_bad_input(store: Store, run: Run, context: ReleaseContext) -> Iterator[dict[str, Any]]:
    """End the run and drop its tables if the input is bad; the error names the source.

    What the block puts into the yielded dict is stored with the error.
    """
    detail: dict[str, Any] = {}
    try:
        yield detail
    except BadInput as error:
        reject_run(store, run, {**detail, **error.as_dict()})
        file = error.file or source_name(context)
        raise BadInput(error.message, file=file, column=error.column, remedy=error.remedy) from None


def source_name(context: ReleaseContext) -> str:
    """Return the name of the source."""
    return context.source.name
