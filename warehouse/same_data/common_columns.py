"""Which records of a table occur among the stored ones, by all columns that both have.

It recognises tables of few different values, also after columns were dropped, added, renamed or
put into another order. A column of the table and one of a group are the same if their values are
distributed in the same way. A record occurs if it agrees in all common columns, three at least, and
if the combination is unique in both tables. Columns are paired by their distribution alone, and
once more by their names.

* Of two independent tables, at most about 1 / e of the records share a combination that is unique
  in both, whatever the populations, because n p (1 - p)^(n - 1) is never larger. The part that
  would agree by chance is estimated by the combinations that two records share, and deducted.
* The compared table is counted as a whole. Of a larger stored table there is a sample, in which
  each record has the probability f = 1 / w. A combination of K records is there X times. Counting w
  where X = 1, and -X w (w - 1) where X > 1, has the expectation 1 for K = 1, 0 for K = 2, and less
  for larger K: combinations that are not unique in the stored table are no evidence on average.
  Two standard deviations of the second part are deducted too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warehouse.columns import RESERVED
from warehouse.same_data.cell_digests import CELLS
from warehouse.same_data.rare_values import COMPARED, MATCHES, MIN_SHARED_VALUES
from warehouse.same_data.row_digests import HOLDERS, DistinctRows, RowDigests
from warehouse.sql import quote_name
from warehouse.tables import STORED_RECORDS, STORED_VALUES

if TYPE_CHECKING:
    import duckdb

Pair = tuple[int, int]  # a column of the table and one of a group
MIN_COLUMN_OVERLAP = 0.5  # of two distributions
MIN_NAMED_OVERLAP = 0.1  # of columns with one name, where one table is a small part of the other
MAX_CHANCE_SHARE = 0.9  # of other records that seem to occur; above, it says nothing
COLUMNS, COMBINED = f"{RESERVED}columns", f"{RESERVED}combined"
UNIQUE = f"{RESERVED}unique"  # combinations of a stored record that one record of the table has

# The mean, over the stored records, of how much of their share a value has in the table.
OVERLAPS = f"""
with records as (
    select data_group, name, min(copies) / max(sampled_share) as weight
    from {STORED_RECORDS} group by all
),
stored as (
    select
        data_group, column_name as stored_column, digest,
        sum(weight) as weight, sum(weight * share) / sum(weight) as share
    from {STORED_VALUES} join records using (data_group, name)
    group by all
),
totals as (select data_group, stored_column, sum(weight) as total from stored group by all)
select
    data_group, column_name, stored_column,
    sum(weight * least(1, holders / $n / share)) / any_value(total) as overlap
from stored join {HOLDERS} using (digest) join totals using (data_group, stored_column)
group by data_group, column_name, stored_column
having overlap >= {MIN_NAMED_OVERLAP}
order by
    round(overlap, 9) desc, column_name = stored_column desc,
    data_group, column_name, stored_column
"""
COMBINE_STORED = f"""
create temp table {COMBINED} as
with records as (
    select name, min(copies) as copies, 1 / max(sampled_share) as weight
    from {STORED_RECORDS} where data_group = $data_group group by name
),
stored as (
    select
        name, any_value(copies) as copies, any_value(weight) as weight,
        sum(hash(digest, stored_column)) as digest
    from (
        select name, digest, column_name as stored_column
        from {STORED_VALUES} where data_group = $data_group
    )
    join {COLUMNS} using (stored_column) join records using (name)
    group by name
)
select *, sum(copies) over same as holders, count(*) over same as names
from stored window same as (partition by digest)
"""
FIND_UNIQUE = f"""
create temp table {UNIQUE} as
select digest
from (select {{combined}} as digest from {CELLS}) semi join {COMBINED} using (digest)
group by digest having count(*) <= $common_count
"""
COUNT_AGREEING = f"""
select
    coalesce(sum(weight) filter (holders = 1), 0),
    count(*) filter (names > 1) / 2,
    coalesce(avg(2 * weight * (weight - 1)) filter (names > 1), 0)
from {COMBINED} semi join {UNIQUE} using (digest)
"""
# An estimate of Good and Turing for the whole table.
ESTIMATE_CHANCE = f"""
select
    coalesce(sum(copies * weight * if(names = 2, weight, 1)) filter (holders = 2), 0)
    / sum(copies * weight)
from {COMBINED}
"""
MATCH_COMBINED = f"""
insert into {MATCHES}
with compared as (
    select name, sum(hash(digest, stored_column)) as digest
    from {COMPARED} join {COLUMNS} using (column_name)
    group by name
)
select c.name, $data_group, s.name
from compared c semi join {UNIQUE} using (digest) join {COMBINED} s using (digest)
where holders = 1
"""


@dataclass(frozen=True)
class Agreement:
    """How many records of a table agree with records of a group."""

    records: float
    chance: float  # share of other records that would seem to

    def compute_share(self, recognisable: float) -> float:
        """Return the share of the recognisable records that agree, without those by chance."""
        return (self.records / recognisable - self.chance) / (1 - self.chance)


def match_common_columns(
    db: duckdb.DuckDBPyConnection, digests: RowDigests, compared: DistinctRows
) -> list[tuple[int, Agreement]]:
    """Add the compared records that agree in all common columns to the matches.

    Return the agreement of the whole table with each group, for each way to pair the columns.
    """
    return [
        (group, match_columns(db, group, columns, compared))
        for group, columns in list_trials(db, digests)
    ]


def list_trials(
    db: duckdb.DuckDBPyConnection, digests: RowDigests
) -> Iterator[tuple[int, frozenset[Pair]]]:
    """Yield the pairs of columns that are compared, for each group and each way to pair them."""
    needed = min(MIN_SHARED_VALUES, len(digests.columns))
    similar: dict[int, list[tuple[int, int, float]]] = {}
    for group, *pair in db.execute(OVERLAPS, {"n": digests.n}).fetchall():
        similar.setdefault(group, []).append((pair[0], pair[1], pair[2]))
    for group, found in similar.items():
        pairs = [(a, b) for a, b, overlap in found if overlap >= MIN_COLUMN_OVERLAP]
        named = [(a, b) for a, b, _ in found if a == b]
        ways = {frozenset(pair_columns(each)) for each in (pairs, named + pairs)}
        yield from ((group, way) for way in ways if len(way) >= max(1, needed))


def pair_columns(pairs: list[Pair]) -> list[Pair]:
    """Return each column once, in the first of its pairs whose other column is free."""
    ours: set[int] = set()
    theirs: set[int] = set()
    chosen = []
    for pair in pairs:
        if pair[0] not in ours and pair[1] not in theirs:
            chosen.append(pair)
            ours.add(pair[0])
            theirs.add(pair[1])
    return chosen


def match_columns(
    db: duckdb.DuckDBPyConnection, group: int, columns: frozenset[Pair], compared: DistinctRows
) -> Agreement:
    """Add the compared records that agree in these columns to the matches."""
    pairs = np.array(sorted(columns), dtype=np.uint64)
    db.register(COLUMNS, pa.table({"column_name": pairs[:, 0], "stored_column": pairs[:, 1]}))
    db.execute(COMBINE_STORED, {"data_group": group}).fetchall()
    # As the sum in COMBINE_STORED, which skips missing cells.
    combined = " + ".join(
        f"if({cell} = 0, 0, hash({cell}, {theirs}::ubigint))::hugeint"
        for cell, theirs in ((quote_name(str(ours)), theirs) for ours, theirs in sorted(columns))
    )
    statement = FIND_UNIQUE.format(combined=combined)
    db.execute(statement, {"common_count": compared.common_count}).fetchall()
    single, pairs_seen, cost = db.execute(COUNT_AGREEING).fetchall()[0]
    ((chance,),) = db.execute(ESTIMATE_CHANCE).fetchall()
    db.execute(MATCH_COMBINED, {"data_group": group}).fetchall()
    for table in (COMBINED, UNIQUE):
        db.execute(f"drop table {table}").fetchall()
    db.unregister(COLUMNS)
    repeated = cost * (pairs_seen + 2 * math.sqrt(pairs_seen))
    return Agreement(single - repeated, min(chance, MAX_CHANCE_SHARE))
