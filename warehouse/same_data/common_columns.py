"""Which records of a table occur among the stored ones, by all columns that both have.

It recognises tables of few different values, also after columns were dropped, added, renamed or
put into another order. A column of the table and one of a group are the same if their values are
distributed in the same way. A record occurs if it agrees in all common columns, three at least, and
if the combination is unique in both. Columns are paired by their distribution alone, and once more
by their names. Samples of larger tables do not show what is unique, so that only complete tables
are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.columns import RESERVED
from warehouse.same_data.matching import (
    COMPARED,
    INCOMING,
    MATCHES,
    MAX_CHANCE_SHARE,
    MIN_SHARED_VALUES,
    WHOLE_ROW,
    DistinctRows,
)
from warehouse.tables import STORED_RECORDS, STORED_VALUES

if TYPE_CHECKING:
    import duckdb

Pair = tuple[int, int]  # a column of the table and one of a group
MIN_COLUMN_OVERLAP = 0.5  # of two distributions
COLUMNS, COMBINED = f"{RESERVED}columns", f"{RESERVED}combined"
COLUMN_TYPES = pa.schema(
    [
        pa.field("trial", pa.int32()),
        pa.field("data_group", pa.int32()),
        pa.field("column_name", pa.uint64()),
        pa.field("stored_column", pa.uint64()),
    ]
)

COMPLETE = f"""
complete as (
    select data_group, name, min(copies) as copies
    from {STORED_RECORDS} group by all having max(sampled_share) = 1
)
"""
OVERLAPS = f"""
with {COMPLETE},
stored as (
    select data_group, column_name, digest, sum(copies) as holders
    from {STORED_VALUES} join complete using (data_group, name)
    where column_name <> {WHOLE_ROW} group by all
),
compared as (
    select column_name, digest, sum(copies) as holders
    from {COMPARED} join {INCOMING} using (name)
    where column_name <> {WHOLE_ROW} group by all
),
stored_shares as (
    select
        data_group, column_name as stored_column, digest,
        holders / sum(holders) over (partition by data_group, column_name) as share
    from stored
),
compared_shares as (
    select column_name, digest, holders / sum(holders) over (partition by column_name) as share
    from compared
)
select data_group, column_name, stored_column
from compared_shares c join stored_shares s using (digest)
group by data_group, column_name, stored_column
having sum(least(c.share, s.share)) >= {MIN_COLUMN_OVERLAP}
order by
    round(sum(least(c.share, s.share)), 9) desc,
    any_value(column_name = stored_column) desc, data_group, column_name, stored_column
"""
COMBINE_STORED = f"""
create temp table {COMBINED} as
with {COMPLETE},
stored as (
    select
        trial, data_group, name, any_value(copies) as copies,
        sum(hash(digest, stored_column)) as digest
    from (select * rename (column_name as stored_column) from {STORED_VALUES})
    join {COLUMNS} using (data_group, stored_column)
    join complete using (data_group, name)
    group by trial, data_group, name
)
select *, sum(copies) over (partition by trial, data_group, digest) as holders from stored
"""
MATCH_COMBINED = f"""
insert into {MATCHES}
with compared as (
    select
        trial, data_group, name, any_value(copies) as copies,
        sum(hash(digest, stored_column)) as digest
    from {COMPARED} join {COLUMNS} using (column_name) join {INCOMING} using (name)
    group by trial, data_group, name
),
unique_compared as (
    from compared qualify sum(copies) over (partition by trial, data_group, digest) = 1
)
select distinct c.name, data_group, s.name
from unique_compared c join {COMBINED} s using (trial, data_group, digest)
where holders = 1
"""
CHANCES = f"""
with trials as (
    select data_group, coalesce(sum(copies) filter (holders = 2), 0) / sum(copies) as chance
    from {COMBINED} group by trial, data_group
)
select data_group, 1 - product(1 - chance) from trials group by data_group
"""


def match_common_columns(db: duckdb.DuckDBPyConnection, compared: DistinctRows) -> dict[int, float]:
    """Add the records that agree in all common columns to the matches.

    Return the share of other records that would agree by chance (see ``compute_shares``).
    """
    db.register(INCOMING, compared.to_arrow())
    lines = list(list_trials(db))
    chances: dict[int, float] = {}
    if lines:
        columns = dict(zip(COLUMN_TYPES.names, map(list, zip(*lines, strict=True)), strict=True))
        db.register(COLUMNS, pa.table(columns, schema=COLUMN_TYPES))
        db.execute(COMBINE_STORED).fetchall()
        db.execute(MATCH_COMBINED).fetchall()
        found = db.execute(CHANCES).fetchall()
        chances = {group: min(share, MAX_CHANCE_SHARE) for group, share in found}
        db.execute(f"drop table {COMBINED}").fetchall()
        db.unregister(COLUMNS)
    db.unregister(INCOMING)
    return chances


def list_trials(db: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, int, int, int]]:
    """Yield the pairs of columns that are compared, for each group and each way to pair them."""
    query = f"select count(distinct column_name) from {COMPARED} where column_name <> {WHOLE_ROW}"
    needed = min(MIN_SHARED_VALUES, db.execute(query).fetchall()[0][0])
    similar: dict[int, list[Pair]] = {}
    for group, *pair in db.execute(OVERLAPS).fetchall():
        similar.setdefault(group, []).append((pair[0], pair[1]))
    for group, pairs in similar.items():
        by_name = sorted(pairs, key=lambda pair: pair[0] != pair[1])  # the order is kept otherwise
        ways = {frozenset(pair_columns(each)) for each in (pairs, by_name)}
        for trial, columns in enumerate(ways):
            if len(columns) >= needed:
                yield from ((trial, group, *pair) for pair in columns)


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
