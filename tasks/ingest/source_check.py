"""Everything about a source that can be found out without making a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks.context import Plan
from tasks.ingest import expectations
from tasks.progress import log_progress
from warehouse.changed_columns import count_changes
from warehouse.database import scratch
from warehouse.home import Home
from warehouse.raw_profile import ROWS, ROWS_LEFT, check_columns, profile
from warehouse.runs import last_raw
from warehouse.sources import SOURCES
from warehouse.sql import column_types

TABLE, BEFORE = "main.source", "before_now"
NEARLY_ALL = 0.95  # of the records that were there before
FEWEST = 20  # records; fewer may all change by chance


def check_source(plan: Plan) -> dict[str, Any]:
    """Reads the source into memory, validates it, and keeps nothing."""
    from ppdm_core.audit.certifiable import smallest_limits

    name = Path(plan.source.path).name
    log_progress("reading the source")
    with scratch() as db:
        SOURCES[plan.source.kind].load(db, plan.source, TABLE)
        check_columns(list(column_types(db, TABLE)), plan.columns, name)
        counts = profile(db, TABLE, plan.columns, plan.record_id)
        changed = restless_columns(db, plan)
    log_progress("validating")
    summary = expectations.check(counts, plan.columns, record_id=plan.record_id, file=name)
    return {
        "rows": int(counts[ROWS]),
        "checks": summary["checks"],
        "method": plan.method,
        "smallest_limits": smallest_limits(plan.policy, int(counts[ROWS_LEFT])),
        "restless_columns": changed,
    }


def restless_columns(db: Any, plan: Plan) -> dict[str, float]:
    """Columns that changed in nearly every record since the last run, and in which share.

    An unchanged record keeps its row; one such column has everybody drawn anew in every release.
    """
    if plan.record_id is None or not Home(Path(plan.home)).database.exists():
        return {}
    with plan.store().transaction(f"{plan.dataset} check") as warehouse:
        before = last_raw(warehouse, plan.dataset)
    if before is None:
        return {}
    db.register(BEFORE, before)
    common, changed = count_changes(db, TABLE, BEFORE, plan.columns, plan.record_id)
    if common < FEWEST:
        return {}
    shares = {name: count / common for name, count in changed.items()}
    return {name: share for name, share in shares.items() if share >= NEARLY_ALL}
