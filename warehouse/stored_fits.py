"""What was learned from records, stored for every later release of a dataset.

Two fits around one changed record would reveal that record, so a fit is made once and reused. It is
stored with the names of the records that were set aside for it: they must be in no release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.arrays import Names
from warehouse.database import Run
from warehouse.integrity.seals import integrity_error
from warehouse.stage_facts import SanitizedFacts, read_facts
from warehouse.tables import FITS, RUNS

if TYPE_CHECKING:
    from warehouse.transaction import Transaction

NOBODY = np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method learned from records."""

    identity: str  # of everything that it depends on, except the records
    learned: Mapping[str, Any]
    set_aside: Names  # of the ledger, sorted; none: it was learned from the released records

    @cached_property
    def state(self) -> str:
        """What was learned, as text."""
        return json.dumps(dict(self.learned), sort_keys=True)

    @cached_property
    def digest(self) -> str:
        """The digest of the fit, which sealed facts of its releases hold."""
        digest = hashlib.sha256(json.dumps([self.identity, self.state]).encode())
        digest.update(self.set_aside.astype("<u8").tobytes())
        return digest.hexdigest()


def read_fits(db: Transaction, dataset: str) -> list[Fit]:
    """Return the fits of a dataset, the oldest first; refuse one that was changed."""
    query = f"""
        select f.identity, f.state, f.set_aside, f.release_id
        from {FITS} f join {RUNS} r using (release_id) where f.dataset = ? order by r.number
    """
    found = []
    for identity, state, set_aside, release_id in db.execute(query, [dataset]).fetchall():
        fit = Fit(identity, json.loads(state), np.frombuffer(set_aside, dtype="<u8"))
        if read_facts(db, release_id, SanitizedFacts).fitted != fit.digest:
            raise integrity_error(
                f"What {release_id} learned from its records was changed afterwards."
            )
        found.append(fit)
    return found


def select_fits(fits: Iterable[Fit], digests: Iterable[str]) -> list[Fit]:
    """Return the fits with these digests, which sealed facts hold; refuse if one is gone."""
    found = {fit.digest: fit for fit in fits}
    wanted = set(digests)
    if not wanted <= found.keys():
        raise integrity_error("What an earlier release learned from its records was deleted.")
    return [fit for digest, fit in found.items() if digest in wanted]


def store_fit(db: Transaction, run: Run, fit: Fit) -> None:
    """Store a new fit; sealed facts of the run hold its digest."""
    row = [run.dataset, fit.identity, run.release_id, fit.state, fit.set_aside.tobytes()]
    db.execute(f"insert into {FITS} values (?, ?, ?, ?, ?)", row)


def join_set_aside(fits: Iterable[Fit]) -> Names:
    """Return the names of the records that were set aside for any of these fits, sorted."""
    return np.unique(np.concatenate([NOBODY, *(fit.set_aside for fit in fits)]))
