"""From the source file to the validated table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.context import Plan, code_version
from tasks.ingest import expectations
from tasks.ingest.dead_runs import end_dead_runs
from tasks.ingest.stored_bounds import marked, with_known_bounds
from tasks.keys import dataset_noise
from tasks.progress import log_progress
from tasks.redaction import shielded
from warehouse.checkpoints import checkpoint
from warehouse.database import Run, Store, first, keep_fact
from warehouse.publishing.publish import mend_latest
from warehouse.raw_profile import check_columns, profile
from warehouse.runs import begin_run, reject_run, tidy
from warehouse.sources import SOURCES
from warehouse.sql import KEY, LABEL, column_types
from warehouse.stages import Stage, is_past
from warehouse.table_digest import content_digest
from warehouse.validated_table import write_validated

if TYPE_CHECKING:
    import duckdb


@task(name="begin", cache_policy=NO_CACHE)
@shielded
def begin(plan: Plan, flow_run_id: str | None = None) -> str:
    """The id of the release: a new one, or that of a dead run of the same release.

    ``flow_run_id`` is that of the whole release; to ask Prefect for it takes three requests.
    """
    store = plan.store()
    digest = SOURCES[plan.source.kind].digest(plan.source)
    run, earlier = begin_run(
        store,
        dataset=plan.dataset,
        owner=plan.owner,
        source_digest=digest,
        file_digest=plan.file_digest,
        code_version=code_version(),
        pid=os.getpid(),
        flow_run_id=flow_run_id,
    )
    checkpoint("run begun")
    end_dead_runs(earlier)
    mend_latest(store, plan.dataset)
    tidy(store, plan.dataset, plan.keep_raw)
    return run.release_id


@task(name="load raw table", cache_policy=NO_CACHE)
@shielded
def load_raw(plan: Plan, release_id: str) -> None:
    log_progress("reading the source")
    store, run = plan.run(release_id)
    if is_past(run.stage, Stage.RAW):
        return
    table = raw_table(run)
    with rejecting(store, run, plan), store.advance(run, Stage.RAW) as change:
        SOURCES[plan.source.kind].load(change.db, plan.source, table)
        if SOURCES[plan.source.kind].digest(plan.source) != run.source_digest:
            raise MachineTrouble(
                f"{source_name(plan)} changed while it was read.",
                file=source_name(plan),
                remedy="Run the same release again when nobody writes to it.",
            )
        row = first(change.db, f"select count(*) from {table}")
        change.detail["rows"] = row[0] if row else 0


@task(name="validate", cache_policy=NO_CACHE)
@shielded
def validate(plan: Plan, release_id: str) -> None:
    log_progress("validating")
    store, run = plan.run(release_id)
    if is_past(run.stage, Stage.VALIDATED):
        return
    with rejecting(store, run, plan):
        check_raw(plan, store, run)
        write_records(plan, store, run)


def check_raw(plan: Plan, store: Store, run: Run) -> None:
    """Great Expectations judges one row of counts; no cell of the table reaches it."""
    with store.transaction(run.release_id) as db:
        names = list(column_types(db, raw_table(run)))
        check_columns(names, plan.columns, source_name(plan))
        counts = profile(db, raw_table(run), plan.columns, plan.record_id)
    expectations.check(counts, plan.columns, record_id=plan.record_id, file=source_name(plan))


def write_records(plan: Plan, store: Store, run: Run) -> None:
    noise = dataset_noise(store, plan.dataset)
    # Without a stable id nothing may be a function of who or what a record is:
    # its key is its place in this one release.
    scope = ("id",) if plan.record_id else ("place", str(run.number))

    def key_of(ids: Sequence[bytes]) -> list[bytes]:
        return noise.record_keys(ids, *scope)

    with store.advance(run, Stage.VALIDATED) as change:
        check_same_id(change.db, plan)
        columns = with_known_bounds(change.db, plan.dataset, plan.columns)
        validated = write_validated(
            change.db, raw_table(run), validated_table(run), columns, plan.record_id, key_of
        )
        data = records_digest(change.db, run, plan)
        facts = {
            "n": validated.n,
            "data": data,
            "schema": asdict(marked(validated.schema, plan.columns)),
            "clamped": validated.clamped,
            "imputed": validated.imputed,
            "dropped_rows": validated.dropped_rows,
        }
        keep_fact(change.db, run, "validated", facts)
        change.detail.update(rows=validated.n, dropped=validated.dropped_rows)
        change.detail.update(data=data, record_id=plan.record_id)


def records_digest(db: duckdb.DuckDBPyConnection, run: Run, plan: Plan) -> str:
    """Of all that a release can use, and nothing else: what is excluded, or how the source is
    written, makes no other data. Without ids keys are places in this one run."""
    features = [column.name for column in plan.columns if column.role == "feature"]
    keys = [KEY] if plan.record_id else []
    return content_digest(db, validated_table(run), [*keys, *features, LABEL])


def check_same_id(db: duckdb.DuckDBPyConnection, plan: Plan) -> None:
    """Under another id everybody would be somebody else to the ledger."""
    rows = db.execute(
        "select distinct json_extract_string(detail, '$.record_id') from meta.event "
        "where dataset = ? and kind = ?",
        [plan.dataset, Stage.VALIDATED],
    ).fetchall()
    known = {name for (name,) in rows} - {None}
    if plan.record_id and known and plan.record_id not in known:
        raise BadInput(
            f"Earlier releases of '{plan.dataset}' knew records by '{min(known)}', not by "
            f"'{plan.record_id}': the ledger could not tell who is who.",
            column=plan.record_id,
            remedy="Keep the record_id; give the column its old name if it was renamed.",
        )


def raw_table(run: Run) -> str:
    return f'raw."{run.table}"'


def validated_table(run: Run) -> str:
    return f'validated."{run.table}"'


@contextmanager
def rejecting(store: Store, run: Run, plan: Plan) -> Iterator[None]:
    """Bad input ends the run and leaves none of its tables behind."""
    try:
        yield
    except BadInput as error:
        reject_run(store, run, error.as_dict())
        raise named(error, plan) from None


def named(error: BadInput, plan: Plan) -> BadInput:
    file = error.file or source_name(plan)
    return BadInput(error.message, file=file, column=error.column, remedy=error.remedy)


def source_name(plan: Plan) -> str:
    return Path(plan.source.path).name
