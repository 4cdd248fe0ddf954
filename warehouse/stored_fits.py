"""What was learned from records, stored for every later release of a dataset.

Two fits around one changed record would reveal that record, so a fit is made once and reused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.database import Run
from warehouse.integrity.seals import integrity_error
from warehouse.stage_facts import SanitizedFacts, read_facts
from warehouse.tables import FITS

if TYPE_CHECKING:
    from warehouse.transaction import Transaction


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method learned from records."""

    learned: dict[str, Any]
    digest: str


def read_fits(db: Transaction, dataset: str) -> dict[str, Fit]:
    """Return the fits of a dataset by identity; refuse one that was changed."""
    query = f"select identity, release_id, state from {FITS} where dataset = ?"
    found = {}
    for identity, release_id, state in db.execute(query, [dataset]).fetchall():
        fit = Fit(json.loads(state), digest_state(state))
        if read_facts(db, release_id, SanitizedFacts).fitted != fit.digest:
            raise integrity_error(
                f"What {release_id} learned from its records was changed afterwards."
            )
        found[identity] = fit
    return found


def find_fit(db: Transaction, dataset: str, digest: str) -> Fit:
    """Return the fit with a digest, which sealed facts hold; refuse if it is gone."""
    query = f"select state from {FITS} where dataset = ?"
    for (state,) in db.execute(query, [dataset]).fetchall():
        if digest_state(state) == digest:
            return Fit(json.loads(state), digest)
    raise integrity_error(f"What '{dataset}' learned from its records was changed afterwards.")


def store_fit(db: Transaction, run: Run, identity: str, learned: Mapping[str, Any]) -> str:
    """Store a fit unless it is known; return its digest, which sealed facts of the run hold."""
    state = json.dumps(dict(learned), sort_keys=True)
    known = f"select 1 from {FITS} where dataset = ? and identity = ?"
    if not db.execute(known, [run.dataset, identity]).fetchall():
        row = [run.dataset, identity, run.release_id, state]
        db.execute(f"insert into {FITS} values (?, ?, ?, ?)", row)
    return digest_state(state)


def digest_state(state: str) -> str:
    """Return the digest of a fit as it is stored."""
    return hashlib.sha256(state.encode()).hexdigest()
