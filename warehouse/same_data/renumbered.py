"""Records that come again with their values, but with another id.

The ledger knows a record by its id. A record of a table with the same data as before counts as
renumbered if no earlier release of the dataset knew its id, earlier records of the dataset have its
values, and none of their ids is in the table any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ppdm_core.model.arrays import Bools, Keys, Names
from warehouse.same_data.cell_digests import CELLS, INCOMING
from warehouse.same_data.rare_values import MATCHES
from warehouse.same_data.row_digests import RowDigests
from warehouse.sql import KEY
from warehouse.tables import (
    LEDGER_CHARGES,
    LEDGER_ENTRIES,
    RUNS,
    SKETCHES,
    STORED_RECORDS,
)

if TYPE_CHECKING:
    import duckdb

    from warehouse.database import Run

NameAccounts = Callable[[Keys], Names]  # the name of each record in the ledger, by its key
BATCH_ROWS = 122_880

CANDIDATES = f"""
with earlier as (
    select data_group, name as stored, account, sampled_share
    from {STORED_RECORDS} r
    join {SKETCHES} s on s.number = r.sketch
    join {RUNS} using (release_id)
    where dataset = $dataset and account <> 0
),
known as (
    select account from earlier
    union
    select record from {LEDGER_CHARGES} c join {LEDGER_ENTRIES} e on e.number = c.entry
    where e.dataset = $dataset
),
unknown as (
    select name, count(*) as copies
    from {INCOMING} i left join known k using (account)
    group by name
    having count(k.account) = 0
),
matches as (
    select name, account, sampled_share from {MATCHES} join earlier using (data_group, stored)
    where list_contains($groups, data_group)
)
select name, copies, coalesce(account, 0) as account, coalesce(sampled_share, 1) as sampled_share
from unknown left join matches using (name)
"""


@dataclass(frozen=True)
class IdCounts:
    """Records of a table with ids that no earlier release knew."""

    unknown: int = 0
    renumbered: int = 0  # of these, records whose values are known


def count_renumbered(
    db: duckdb.DuckDBPyConnection,
    run: Run,
    digests: RowDigests,
    accounts: Names,
    name_accounts: NameAccounts,
    chances: Mapping[int, float],
) -> IdCounts:
    """Return how many records of a run's table have unknown ids, and how many known values.

    ``chances`` of the groups that the table belongs to: the share of other records that would seem
    to recur. It is deducted.
    """
    is_compared = digests.is_compared
    incoming = {"name": digests.names[is_compared], "account": accounts[is_compared]}
    db.register(INCOMING, pa.table(incoming))
    values = {"dataset": run.dataset, "groups": list(chances)}
    found = db.execute(CANDIDATES, values).fetchnumpy()
    db.unregister(INCOMING)
    row, place = np.unique(found["name"], return_index=True, return_inverse=True)[1:]
    copies = found["copies"][row]  # (u,) of each unknown record
    has_match = found["account"] != 0
    known = np.unique(found["account"][has_match])
    is_here = np.isin(found["account"], known[find_present(db, known, name_accounts)])
    has_earlier, has_present, sampled_share = (np.zeros(len(row)) for _ in range(3))
    np.maximum.at(has_earlier, place, has_match)
    np.maximum.at(has_present, place, is_here)
    np.maximum.at(sampled_share, place, found["sampled_share"])
    unknown = copies.sum() / digests.sampled_share
    renumbered = (copies / sampled_share)[has_earlier > has_present].sum() / digests.sampled_share
    chance = max(chances.values(), default=0.0)
    renumbered = np.clip((renumbered - chance * unknown) / (1 - chance), 0, unknown)
    return IdCounts(round(unknown), round(renumbered))  # both may be estimates


def find_present(
    db: duckdb.DuckDBPyConnection, accounts: Names, name_accounts: NameAccounts
) -> Bools:
    """Return which of the accounts belong to a record of the table."""
    is_present = np.zeros(len(accounts), dtype=np.bool_)
    if len(accounts):
        for keys in read_keys(db):
            is_present |= np.isin(accounts, name_accounts(keys))
    return is_present


def read_keys(db: duckdb.DuckDBPyConnection) -> Iterator[Keys]:
    """Yield the keys of the records in batches."""
    query = f"select {KEY} from {CELLS}"
    for batch in db.sql(query).to_arrow_reader(BATCH_ROWS):
        column = batch.column(0).cast(pa.binary(16))
        yield np.frombuffer(column.buffers()[1], dtype=np.uint8).reshape(-1, 16)[: len(column)]
