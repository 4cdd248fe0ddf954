"""What was learned from records, kept for every later release.

Two fits around one changed record would give that record away, so a fit is made once and reused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ppdm_core.model.schema import Schema
from ppdm_core.sanitizers import Sanitizer
from warehouse.database import Run, first, read_fact
from warehouse.integrity.seals import broken

if TYPE_CHECKING:
    import duckdb


def fit_identity(sanitizer: Sanitizer, schema: Schema, given: dict[str, Any] | None) -> str:
    """What a fit depends on beside the records."""
    columns = [(column.name, column.low, column.high) for column in schema.numeric]
    text = json.dumps([sanitizer.name, sanitizer.fit_parameters(), columns, given], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def stored_fit(db: duckdb.DuckDBPyConnection, dataset: str, identity: str) -> dict[str, Any] | None:
    query = "select release_id, state from meta.fitted where dataset = ? and identity = ?"
    row = first(db, query, [dataset, identity])
    if row is None:
        return None
    release_id, state = row
    facts = read_fact(db, release_id, "sanitized") or {}
    if facts.get("fitted", digest_of(state)) != digest_of(state):  # older ones tell nothing
        raise broken(f"What {release_id} learned from its records was changed afterwards.")
    return dict(json.loads(state))


def digest_of(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()


def published_facts(
    db: duckdb.DuckDBPyConnection, dataset: str, kind: str = "sanitized"
) -> list[dict[str, Any]]:
    """Facts of the releases that left, the oldest first; one that is gone would be forgotten."""
    rows = db.execute(
        "select release_id from published.version where dataset = ? order by number", [dataset]
    ).fetchall()
    found = [read_fact(db, release_id, kind) for (release_id,) in rows]
    if None in found:
        raise broken(f"What {rows[found.index(None)][0]} was made with is not known any more.")
    return [facts for facts in found if facts is not None]


def keep_fit(
    db: duckdb.DuckDBPyConnection, run: Run, identity: str, fitted: Mapping[str, Any]
) -> str:
    """Its digest, which a sealed fact of the run is to hold."""
    state = json.dumps(dict(fitted), sort_keys=True)
    if stored_fit(db, run.dataset, identity) is None:
        db.execute(
            "insert into meta.fitted values (?, ?, ?, ?)",
            [run.dataset, identity, run.release_id, state],
        )
    return digest_of(state)
