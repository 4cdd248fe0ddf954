"""The checks of a source that need no release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks.context import ReleaseContext
from tasks.ingest import expectations
from tasks.progress import log_progress
from warehouse.changed_columns import count_changes
from warehouse.database import open_scratch_database
from warehouse.home import Home
from warehouse.raw_profile import REPEATED, ROWS, ROWS_LEFT, check_columns, profile
from warehouse.runs import read_last_raw
from warehouse.sources import SOURCES
from warehouse.sql import column_types

TABLE, EARLIER_TABLE = "main.source", "earlier_source"
MIN_CHANGED_SHARE = 0.95  # of the records that were there before
MIN_COMMON_RECORDS = 20  # fewer may all change by chance


def check_source(context: ReleaseContext) -> dict[str, Any]:
    """Read the source into memory, validate it, and return counts; nothing is stored."""
    from ppdm_core.audit.certifiable import compute_smallest_limits

    name = context.source.name
    log_progress("reading the source")
    with open_scratch_database() as db:
        SOURCES[context.source.kind].load(db, context.source, TABLE)
        check_columns(list(column_types(db, TABLE)), context.columns, name)
        counts = profile(db, TABLE, context.columns, context.record_id, context.expectations)
        changed = find_frequently_changed_columns(db, context)
    log_progress("validating")
    summary = expectations.check_profile(
        counts, context.columns, record_id=context.record_id, file=name
    )
    passed = expectations.judge_expectations(counts, context.expectations)
    expectations.check_expectations(context.expectations, passed, file=name)
    return {
        "rows": int(counts[ROWS]),
        "checks": summary["checks"] + len(passed),
        "method": context.method,
        "smallest_limits": compute_smallest_limits(context.policy, int(counts[ROWS_LEFT])),
        "restless_columns": changed,
        "repeated_rows": int(counts[REPEATED]),
    }


def find_frequently_changed_columns(db: Any, context: ReleaseContext) -> dict[str, float]:
    """Return the columns that changed in nearly every record since the last run, and the share.

    An unchanged record keeps its row; one such column makes every release redraw all records.
    """
    if context.record_id is None or not Home(Path(context.home)).database.exists():
        return {}
    with context.open_store().transaction(f"{context.dataset} check") as warehouse:
        before = read_last_raw(warehouse, context.dataset)
    if before is None:
        return {}
    db.register(EARLIER_TABLE, before)
    common, changed = count_changes(db, TABLE, EARLIER_TABLE, context.columns, context.record_id)
    if common < MIN_COMMON_RECORDS:
        return {}
    shares = {name: count / common for name, count in changed.items()}
    return {name: share for name, share in shares.items() if share >= MIN_CHANGED_SHARE}
