"""Which records of a table occur among the stored ones, by all columns that both have.

It recognises tables of few different values, also after columns were dropped, added, renamed or
put into another order. A column of the table and one of a group are the same if their values are
spread in the same way. A record occurs if it agrees in all common columns, three at least, and if
the combination is unique in both. Samples of larger tables do not show what is unique, so that only
complete tables are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.columns import RESERVED
from warehouse.same_data.matching import (
    COMPARED,
    INCOMING,
    MATCHES,
    MIN_SHARED_VALUES,
    WHOLE_ROW,
    DistinctRows,
)
from warehouse.tables import STORED_RECORDS, STORED_VALUES

if TYPE_CHECKING:
    import duckdb

Places = dict[int, int]  # place of a column in the table -> its number in a group
MIN_COLUMN_OVERLAP = 0.5  # of two distributions
COLUMNS, COMBINED = f"{RESERVED}columns", f"{RESERVED}combined"

COMPLETE = f"""
complete as (
    select data_group, name, min(copies) as copies
    from {STORED_RECORDS} group by all having max(rate) = 1
)
"""
OVERLAPS = f"""
with {COMPLETE},
stored as (
    select data_group, place, digest, sum(copies) as holders
    from {STORED_VALUES} join complete using (data_group, name)
    where place <> {WHOLE_ROW} group by all
),
compared as (
    select place, digest, sum(copies) as holders
    from {COMPARED} join {INCOMING} using (name) where place <> {WHOLE_ROW} group by all
),
stored_shares as (
    select
        data_group, place as number, digest,
        holders / sum(holders) over (partition by data_group, place) as share
    from stored
),
compared_shares as (
    select place, digest, holders / sum(holders) over (partition by place) as share from compared
)
select data_group, place, number, sum(least(c.share, s.share)) as overlap
from compared_shares c join stored_shares s using (digest)
group by all
having overlap >= {MIN_COLUMN_OVERLAP}
order by overlap desc, place, number
"""
COMBINE_STORED = f"""
create temp table {COMBINED} as
with {COMPLETE},
stored as (
    select data_group, name, any_value(copies) as copies, sum(hash(digest, number)) as digest
    from (select data_group, name, place as number, digest from {STORED_VALUES})
    join {COLUMNS} using (data_group, number)
    join complete using (data_group, name)
    group by data_group, name
)
select *, sum(copies) over (partition by data_group, digest) as holders from stored
"""
MATCH_COMBINED = f"""
insert into {MATCHES}
with compared as (
    select data_group, name, any_value(copies) as copies, sum(hash(digest, number)) as digest
    from {COMPARED} join {COLUMNS} using (place) join {INCOMING} using (name)
    group by data_group, name
),
unique_compared as (
    from compared qualify sum(copies) over (partition by data_group, digest) = 1
)
select c.name, data_group, s.name
from unique_compared c join {COMBINED} s using (data_group, digest)
where holders = 1
"""
CHANCES = f"""
select data_group, coalesce(sum(copies) filter (holders = 2), 0) / sum(copies)
from {COMBINED} group by data_group
"""


def match_common_columns(
    db: duckdb.DuckDBPyConnection, compared: DistinctRows
) -> tuple[dict[int, Places], dict[int, float]]:
    """Add the records that agree in all common columns to the matches.

    Return the common columns of each group, and the share of other records that would agree by
    chance (see ``compute_shares``).
    """
    chances: dict[int, float] = {}
    db.register(INCOMING, compared.to_arrow())
    columns = find_common_columns(db)
    row = db.execute(f"select count(distinct place) from {COMPARED} where place >= 0").fetchall()
    needed = min(MIN_SHARED_VALUES, row[0][0])
    lines = [
        (group, place, number)
        for group, places in columns.items()
        for place, number in places.items()
        if len(places) >= needed
    ]
    if lines:
        names = ("data_group", "place", "number")
        table = dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))
        db.register(COLUMNS, pa.table(table))
        db.execute(COMBINE_STORED).fetchall()
        db.execute(MATCH_COMBINED).fetchall()
        chances = dict(db.execute(CHANCES).fetchall())
        db.execute(f"drop table {COMBINED}").fetchall()
        db.unregister(COLUMNS)
    db.unregister(INCOMING)
    return columns, chances


def find_common_columns(db: duckdb.DuckDBPyConnection) -> dict[int, Places]:
    """Return for each group which of its columns the compared table has, the most similar first."""
    found: dict[int, Places] = {}
    for group, place, number, _ in db.execute(OVERLAPS).fetchall():
        places = found.setdefault(group, {})
        if place not in places and number not in places.values():
            places[place] = number
    return found
