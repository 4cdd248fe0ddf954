"""Everything about a source that can be found out without making a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks import expectations
from tasks.plan import Plan, say
from warehouse.profile import ROWS, ROWS_LEFT, check_columns, profile
from warehouse.sources import SOURCES
from warehouse.sql import column_types
from warehouse.store import scratch

TABLE = "main.source"


def check_source(plan: Plan) -> dict[str, Any]:
    """Reads the source into memory, validates it, and keeps nothing."""
    from ppdm_core.power import smallest_limits

    name = Path(plan.source.path).name
    say("reading the source")
    with scratch() as db:
        SOURCES[plan.source.kind].load(db, plan.source, TABLE)
        check_columns(list(column_types(db, TABLE)), plan.columns, name)
        counts = profile(db, TABLE, plan.columns, plan.record_id)
    say("validating")
    summary = expectations.check(counts, plan.columns, record_id=plan.record_id, file=name)
    return {
        "rows": int(counts[ROWS]),
        "checks": summary["checks"],
        "method": plan.method,
        "smallest_limits": smallest_limits(plan.policy, int(counts[ROWS_LEFT])),
    }
