"""What was learned from records, kept for every later release.

Two fits around one changed record would give that record away, so a fit is made once and reused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ppdm_core.sanitizers import Sanitizer
from ppdm_core.types import Schema
from warehouse.store import Run, first

if TYPE_CHECKING:
    import duckdb


def fit_identity(sanitizer: Sanitizer, schema: Schema, given: dict[str, Any] | None) -> str:
    """What a fit depends on beside the records."""
    columns = [(column.name, column.low, column.high) for column in schema.numeric]
    text = json.dumps([sanitizer.name, sanitizer.fit_parameters(), columns, given], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def stored_fit(db: duckdb.DuckDBPyConnection, dataset: str, identity: str) -> dict[str, Any] | None:
    query = "select state from meta.fitted where dataset = ? and identity = ?"
    row = first(db, query, [dataset, identity])
    return json.loads(row[0]) if row else None


def published_facts(
    db: duckdb.DuckDBPyConnection, dataset: str, kind: str = "sanitized"
) -> list[dict[str, Any]]:
    """Facts of the releases that left, the oldest first."""
    rows = db.execute(
        "select f.value from meta.fact f join published.version v using (release_id) "
        "where v.dataset = ? and f.kind = ? order by v.number",
        [dataset, kind],
    ).fetchall()
    return [json.loads(value) for (value,) in rows]


def keep_fit(
    db: duckdb.DuckDBPyConnection, run: Run, identity: str, fitted: Mapping[str, Any]
) -> None:
    if stored_fit(db, run.dataset, identity) is None:
        state = json.dumps(dict(fitted), sort_keys=True)
        db.execute(
            "insert into meta.fitted values (?, ?, ?, ?)",
            [run.dataset, identity, run.release_id, state],
        )
