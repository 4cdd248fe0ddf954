"""The records that any release of a dataset drew, whatever became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.model.arrays import Bools, Names
from warehouse.ledger.balance import ALL_RECORDS
from warehouse.ledger.entries import check_ledger
from warehouse.tables import LEDGER_CHARGES, LEDGER_ENTRIES

if TYPE_CHECKING:
    from warehouse.transaction import Transaction


@dataclass(frozen=True, eq=False)
class DrawnRecords:
    """The names of records with a charge in the ledger."""

    names: Names  # sorted

    def find(self, names: Names) -> Bools:
        """Return which of the records were drawn.

        Where a release had no ids, every record may have been in it.
        """
        if len(self.names) and self.names[0] == ALL_RECORDS:
            return np.ones(len(names), dtype=np.bool_)
        return find_names(names, self.names)


def find_names(names: Names, among: Names) -> Bools:
    """Return which of the names are among others, which are sorted."""
    if not len(among):
        return np.zeros(len(names), dtype=np.bool_)
    place = np.searchsorted(among, names).clip(max=len(among) - 1)
    return np.asarray(among[place] == names)


def read_drawn_records(db: Transaction, dataset: str) -> DrawnRecords:
    """Return the records that the ledger charged for a dataset; refuse a changed ledger."""
    check_ledger(db, [])
    query = f"""
        select distinct c.record
        from {LEDGER_CHARGES} c join {LEDGER_ENTRIES} e on e.number = c.entry
        where e.dataset = ? order by c.record
    """
    return DrawnRecords(np.asarray(db.execute(query, [dataset]).fetchnumpy()["record"]))
