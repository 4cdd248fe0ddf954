"""What was learned from records, stored for every later release of a dataset.

Two fits around one changed record would reveal that record, so a fit is made once and reused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warehouse.database import Run, fetch_first
from warehouse.integrity.seals import integrity_error
from warehouse.stage_facts import SanitizedFacts, read_facts
from warehouse.tables import FITS

if TYPE_CHECKING:
    from warehouse.transaction import Transaction


def find_fit(db: Transaction, dataset: str, identity: str) -> dict[str, Any] | None:
    """Return the fit that an earlier run stored, or None; refuse one that was changed."""
    query = f"select release_id, state from {FITS} where dataset = ? and identity = ?"
    row = fetch_first(db, query, [dataset, identity])
    if row is None:
        return None
    release_id, state = row
    if read_facts(db, release_id, SanitizedFacts).fitted != digest_state(state):
        raise integrity_error(f"What {release_id} learned from its records was changed afterwards.")
    return dict(json.loads(state))


def store_fit(db: Transaction, run: Run, identity: str, fitted: Mapping[str, Any]) -> str:
    """Store a fit unless it is known; return its digest, which sealed facts of the run hold."""
    state = json.dumps(dict(fitted), sort_keys=True)
    if find_fit(db, run.dataset, identity) is None:
        db.execute(
            f"insert into {FITS} values (?, ?, ?, ?)",
            [run.dataset, identity, run.release_id, state],
        )
    return digest_state(state)


def digest_state(state: str) -> str:
    """Return the digest of a fit as it is stored."""
    return hashlib.sha256(state.encode()).hexdigest()
