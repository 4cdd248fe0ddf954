"""Which records of a table occur among the stored ones, by values that few records hold.

What is rare is counted in the whole table, also where only a sample of it is stored. A record
occurs if it shares rare values of three columns or more. In wide tables of whole numbers they
coincide by chance. So there must be so many that chance gives them to ``MAX_CHANCE`` records of the
stored table at most. With L shared values expected of a stored record at random, s or more have at
most the probability L^s / s! (Poisson).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warehouse.columns import RESERVED
from warehouse.same_data.cell_digests import INCOMING
from warehouse.same_data.row_digests import HOLDERS, DistinctRows, RowDigests
from warehouse.tables import STORED_RECORDS, STORED_VALUES

if TYPE_CHECKING:
    import duckdb

MIN_SHARED_VALUES = 3
MAX_CHANCE = 0.05  # records of the stored table that share as many values by chance
MAX_HOLDERS = 5  # of a rare value, among the records of a table ...
MAX_HOLDER_SHARE = 0.05  # ... and as a share of them; a value with one holder is always rare
MIN_SHARE = 0.5  # of the records of a table: then it holds the same data
MIN_RECOGNISABLE_SHARE = 0.1  # of the records; a table with fewer is not recognised
COMPARED, MATCHES = f"{RESERVED}compared", f"{RESERVED}matches"

MARK_RARE = f"""
create temp table {{table}} as
with totals as (select digest, sum(holders) as holders from {HOLDERS} group by digest)
select name, column_name, digest, h.holders / $n as share, t.holders <= $holders as is_rare
from {INCOMING} join {HOLDERS} h using (column_name, digest) join totals t using (digest)
"""
MATCH = f"""
create temp table {MATCHES} as
with records as (
    select data_group, name, 1 / max(sampled_share) as weight from {STORED_RECORDS} group by all
),
sizes as (
    select data_group, count(*) as drawn, sum(weight) as size from records group by data_group
),
compared as (select distinct name, digest from {COMPARED} where is_rare),
stored as (
    select distinct data_group, name as stored, digest from {STORED_VALUES} where is_rare
),
pairs as (
    select name, data_group, stored, count(*) as shared
    from compared join stored using (digest)
    group by all
),
chances as (
    select
        name, data_group, any_value(size) as size,
        greatest(sum(shared) / any_value(drawn), 1e-300) as expected
    from pairs join sizes using (data_group)
    group by name, data_group
)
select name, data_group, stored
from pairs join chances using (name, data_group)
where shared >= {MIN_SHARED_VALUES}
    and ln(size) + shared * ln(expected) - lgamma(shared + 1) <= ln({MAX_CHANCE})
"""
RECOGNISABLE = f"""
select
    coalesce(sum(copies) filter (
        copies = 1 or name in (
            select name from {COMPARED} where is_rare
            group by name having count(distinct digest) >= {MIN_SHARED_VALUES}
        )
    ), 0),
    sum(copies)
from {INCOMING}
"""
SHARES = f"""
with rates as (
    select data_group, name as stored, max(sampled_share) as sampled_share
    from {STORED_RECORDS} group by all
),
found as (
    select name, data_group, 1 / max(sampled_share) as weight
    from {MATCHES} join rates using (data_group, stored)
    group by name, data_group
)
select data_group, sum(copies * weight) as found
from found join {INCOMING} using (name)
group by data_group
"""


def store_values(
    db: duckdb.DuckDBPyConnection, table: str, digests: RowDigests, rows: DistinctRows
) -> None:
    """Create a temporary table of the values of these rows, and which of them are rare.

    Where most rows are there several times, they count as one.
    """
    cells = digests.cells[rows.first].ravel()
    is_present = cells != 0
    incoming = {
        "name": np.repeat(rows.names, len(digests.columns))[is_present],
        "column_name": np.tile(digests.columns, len(rows.names))[is_present],
        "digest": cells[is_present],
    }
    n = digests.n / rows.common_count
    holders = max(1, min(MAX_HOLDERS, int(MAX_HOLDER_SHARE * n))) * rows.common_count
    db.register(INCOMING, pa.table(incoming))
    db.execute(MARK_RARE.format(table=table), {"n": digests.n, "holders": holders}).fetchall()
    db.unregister(INCOMING)


def match_rare_values(db: duckdb.DuckDBPyConnection) -> None:
    """Create a temporary table of the stored records that occur in the compared table."""
    db.execute(MATCH).fetchall()


def count_recognisable(db: duckdb.DuckDBPyConnection, compared: DistinctRows) -> int:
    """Return how many records could be recognised if they occurred, 0 if they are too few."""
    db.register(INCOMING, compared.to_arrow())
    recognisable, total = db.execute(RECOGNISABLE).fetchall()[0]
    db.unregister(INCOMING)
    return int(recognisable) if recognisable >= MIN_RECOGNISABLE_SHARE * total else 0


def count_matches(db: duckdb.DuckDBPyConnection, compared: DistinctRows) -> dict[int, float]:
    """Return an estimate of how many of the compared records occur in each group.

    Of a group of which a sample is stored, each record stands for several.
    """
    db.register(INCOMING, compared.to_arrow())
    found = db.execute(SHARES).fetchall()
    db.unregister(INCOMING)
    return dict(found)
