"""Which records of a table occur among the stored ones, by rare values or complete rows.

A record occurs if it shares a complete row that is unique in both tables, or rare values of three
columns or more. Both can happen by chance:

* Of two independent samples of one population, at most about 1 / e of the records share a row that
  is unique in both, whatever the population, because n p (1 - p)^(n - 1) is never larger.
* Rare values coincide in wide tables of whole numbers. So there must be so many that chance gives
  them to ``MAX_CHANCE`` stored records at most. With L shared values expected of a stored record at
  random, s or more have at most the probability L^s / s! (Poisson).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ppdm_core.model.arrays import Bools, Ints
from warehouse.columns import RESERVED
from warehouse.same_data.row_digests import Digests, RowDigests
from warehouse.tables import STORED_RECORDS, STORED_VALUES

if TYPE_CHECKING:
    import duckdb

MIN_SHARED_VALUES = 3
MAX_CHANCE = 0.05  # stored records that share as many values by chance
MAX_HOLDERS = 5  # of a rare value, among the records that were drawn ...
MAX_HOLDER_SHARE = 0.05  # ... and as a share of them; a value with one holder is always rare
MIN_SHARE = 0.5  # of the records of a table: then it holds the same data
MAX_CHANCE_SHARE = 0.9  # of other records that seem to occur; above, it says nothing
MIN_RECOGNISABLE_SHARE = 0.1  # of the records; a table with fewer is not recognised
WHOLE_ROW = 0  # in place of a column, for the digest of a complete row
INCOMING = f"{RESERVED}incoming"
COMPARED, MATCHES = f"{RESERVED}compared", f"{RESERVED}matches"

MARK_RARE = f"""
create temp table {{table}} as
with holders as (
    select digest, column_name = {WHOLE_ROW} as is_row, count(distinct name) as holders
    from {INCOMING} group by all
)
select distinct name, column_name, i.digest, holders <= if(is_row, 1, $holders) as is_rare
from {INCOMING} i join holders h on h.digest = i.digest and h.is_row = (column_name = {WHOLE_ROW})
"""
MATCH = f"""
create temp table {MATCHES} as
with sizes as (
    select data_group, count(distinct name) as size from {STORED_RECORDS} group by data_group
),
compared as (
    select distinct name, digest, column_name = {WHOLE_ROW} as is_row from {COMPARED} where is_rare
),
complete as (
    select distinct data_group, name from {STORED_RECORDS} where $is_complete and sampled_share = 1
),
stored as (
    select distinct data_group, name as stored, digest, column_name = {WHOLE_ROW} as is_row
    from {STORED_VALUES}
    where is_rare and (column_name <> {WHOLE_ROW} or (data_group, name) not in (from complete))
),
pairs as (
    select
        name, data_group, stored,
        count(*) filter (not is_row) as shared, bool_or(is_row) as has_row
    from compared join stored using (digest, is_row)
    group by all
),
chances as (
    select
        name, data_group, any_value(size) as size,
        greatest(sum(shared) / any_value(size), 1e-300) as expected
    from pairs join sizes using (data_group)
    group by name, data_group
)
select name, data_group, stored
from pairs join chances using (name, data_group)
where has_row or shared >= {MIN_SHARED_VALUES}
    and ln(size) + shared * ln(expected) - lgamma(shared + 1) <= ln({MAX_CHANCE})
"""
SHARES = f"""
with recognisable as (
    select name, copies from {INCOMING}
    where copies = 1 or name in (
        select name from {COMPARED} where is_rare and column_name <> {WHOLE_ROW}
        group by name having count(distinct digest) >= {MIN_SHARED_VALUES}
    )
),
rates as (
    select data_group, name as stored, max(sampled_share) as sampled_share
    from {STORED_RECORDS} group by all
),
found as (
    select name, data_group, 1 / max(sampled_share) as weight
    from {MATCHES} join rates using (data_group, stored)
    group by name, data_group
)
select data_group, sum(copies * weight) / (select sum(copies) from recognisable) as share
from found join recognisable using (name)
group by data_group
having (select sum(copies) from recognisable)
    >= {MIN_RECOGNISABLE_SHARE} * (select sum(copies) from {INCOMING})
"""
CHANCES = f"""
with names as (select data_group, name, min(copies) as copies from {STORED_RECORDS} group by all)
select data_group, coalesce(sum(copies) filter (copies = 2), 0) / sum(copies)
from names group by data_group
"""


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows among the drawn ones; equal rows have one name."""

    first: Ints  # (m,) index of the first row of each name
    names: Digests  # (m,)
    copies: Ints  # (m,) rows of each name; where most rows are there k times, times k

    def to_arrow(self) -> pa.Table:
        """Return names and copies."""
        return pa.table({"name": self.names, "copies": self.copies})


def find_distinct_rows(digests: RowDigests, is_drawn: Bools) -> DistinctRows:
    """Return the distinct rows among those that are drawn."""
    drawn = np.flatnonzero(is_drawn)
    names, first, copies = np.unique(digests.names[drawn], return_index=True, return_counts=True)
    return DistinctRows(drawn[first], names, -(-copies // find_common_count(copies)))


def find_common_count(copies: Ints) -> int:
    """Return how often most rows of a table are there, 1 if there is no such number.

    A table in which every row is written eight times is like the table with one of each.
    """
    count = int(np.median(copies)) if len(copies) else 1
    return count if np.mean(copies == count) >= MIN_SHARE else 1


def store_values(
    db: duckdb.DuckDBPyConnection, table: str, digests: RowDigests, rows: DistinctRows
) -> None:
    """Create a temporary table of the values of these rows, and which of them are rare.

    Copies of a row count as one. A row with a copy is no evidence as a complete row.
    """
    is_single = rows.copies == 1
    cells, complete = digests.cells[rows.first], digests.rows[rows.first[is_single]]
    whole_row = np.full(complete.shape[1], WHOLE_ROW, dtype=np.uint64)
    parts = (
        (rows.names, cells, digests.columns),
        (rows.names[is_single], complete, whole_row),
    )
    incoming = pa.concat_tables(
        pa.table(
            {
                "name": np.repeat(names, values.shape[1])[values.ravel() != 0],
                "column_name": np.tile(columns, len(names))[values.ravel() != 0],
                "digest": values.ravel()[values.ravel() != 0],
            }
        )
        for names, values, columns in parts
    )
    holders = max(1, min(MAX_HOLDERS, int(MAX_HOLDER_SHARE * len(rows.names))))
    db.register(INCOMING, incoming)
    db.execute(MARK_RARE.format(table=table), {"holders": holders}).fetchall()
    db.unregister(INCOMING)


def match_rare_values(db: duckdb.DuckDBPyConnection, is_complete: bool) -> None:
    """Create a temporary table of the stored records that occur in the compared table.

    ``is_complete``: it is no sample. Complete rows of two complete tables are left to the match
    of their common columns, because two chances are more than one.
    """
    db.execute(MATCH, {"is_complete": is_complete}).fetchall()


def estimate_chances(db: duckdb.DuckDBPyConnection) -> dict[int, float]:
    """Return the share of other records that would share a unique row of each group by chance.

    It is the share of the rows that are there twice, an estimate of Good and Turing.
    """
    return {group: min(share, MAX_CHANCE_SHARE) for group, share in db.execute(CHANCES).fetchall()}


def compute_shares(
    db: duckdb.DuckDBPyConnection, compared: DistinctRows, chances: Mapping[int, float]
) -> dict[int, float]:
    """Return the share of the records that occur in each group, the largest first.

    Records that nothing could recognise are left out. Of the records that do not occur, the share
    ``chances`` seems to: it is deducted.
    """
    db.register(INCOMING, compared.to_arrow())
    found = db.execute(SHARES).fetchall()
    db.unregister(INCOMING)
    shares = {group: (share - chances[group]) / (1 - chances[group]) for group, share in found}
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))
