"""What the warehouse keeps of the records of every validated table, to recognise them later.

Tables that hold the same data form a data group: a table belongs to each group that holds at least
half of its records, and to those of earlier runs of the same source or records; otherwise it begins
a group. It adds the records that its group does not have yet, so that a table with few changes
adds little. Nothing is ever removed. A sealed row records what each table added.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ppdm_core.model.arrays import Names
from warehouse.columns import RESERVED
from warehouse.database import fetch_first
from warehouse.same_data.cell_digests import CELLS, INCOMING, CellDigests
from warehouse.same_data.common_columns import match_common_columns
from warehouse.same_data.rare_values import (
    COMPARED,
    MATCHES,
    MIN_SHARE,
    count_matches,
    count_recognisable,
    match_rare_values,
    store_values,
)
from warehouse.same_data.renumbered import IdCounts, NameAccounts, count_renumbered
from warehouse.same_data.row_digests import (
    HOLDERS,
    RowDigests,
    count_holders,
    find_distinct_rows,
    read_row_digests,
)
from warehouse.same_data.sketch_check import check_sketches, recount_sketches
from warehouse.tables import EVENTS, RUNS, SKETCHES, STORED_RECORDS, STORED_VALUES

if TYPE_CHECKING:
    from warehouse.database import Change, Run
    from warehouse.transaction import Transaction

DRAWN, KNOWN = f"{RESERVED}drawn", f"{RESERVED}known"
MIN_KNOWN_SHARE = 0.5  # of the values of a record
SAME_SOURCE = f"""
select distinct unnest(data_groups::integer[]) as data_group
from {SKETCHES} join {RUNS} using (release_id) left join {EVENTS} e using (release_id)
where source_digest = $source or json_extract_string(e.detail, '$.data') = $data
order by data_group
"""
# Records of the group that hold most values of a new one: its values need not be stored again.
FIND_KNOWN = f"""
create temp table {KNOWN} as
with sizes as (
    select name, count(distinct digest) as size
    from {DRAWN} group by name
),
pairs as (
    select d.name, stored, count(distinct d.digest) as shared
    from {DRAWN} d
    join {MATCHES} m using (name)
    join {STORED_VALUES} s
        on s.data_group = m.data_group and s.name = m.stored and s.digest = d.digest
    where m.data_group = $data_group
    group by d.name, stored
)
select name, max_by(stored, shared) as stored
from pairs join sizes using (name)
where shared >= {MIN_KNOWN_SHARE} * size
group by name
union all
select distinct name, name from {STORED_VALUES} where data_group = $data_group
"""
ADD_VALUES = f"""
insert into {STORED_VALUES}
select $sketch, $data_group, name, column_name, digest, share, is_rare
from {DRAWN} anti join {KNOWN} using (name)
"""
ADD_RECORDS = f"""
insert into {STORED_RECORDS}
with accounts as (select name, account from {STORED_RECORDS} where data_group = $data_group),
known as (
    select name, coalesce(max(stored) filter (stored = name), max(stored)) as stored
    from {KNOWN} group by name
),
incoming as (
    select coalesce(stored, name) as name, account, copies
    from {INCOMING} left join known using (name)
)
select $sketch, $data_group, name, account, min(copies), $sampled_share
from incoming anti join accounts using (name, account)
group by name, account
"""


def store_sketch(
    change: Change,
    run: Run,
    cells: CellDigests,
    *,
    data: str,
    name_accounts: NameAccounts | None,
) -> None:
    """Recognise the records of a validated table, and store those that are new.

    ``data`` is the digest of its records. ``name_accounts`` names them in the ledger; without a
    record id there is none.
    """
    db = change.db
    check_sketches(db)
    digests = read_row_digests(cells)
    accounts = np.zeros(len(digests.names), dtype=np.uint64)
    if name_accounts:
        accounts = name_accounts(digests.keys)
    shares, chances = match_stored_records(db, digests)
    groups = [group for group, share in shares.items() if share >= MIN_SHARE]
    groups += [group for group in find_groups(db, run, data) if group not in groups]
    counts = IdCounts()
    if name_accounts:
        chances = {group: chances.get(group, 0.0) for group in groups}
        counts = count_renumbered(db, run, digests, accounts, name_accounts, chances)
    number = next_sketch_number(db)
    group = groups[0] if groups else number
    add_records(db, digests, accounts, number, group)
    for table in (CELLS, HOLDERS, COMPARED, MATCHES):
        db.execute(f"drop table {table}").fetchall()
    insert_sketch(change, run, number, groups or [number], counts)


def insert_sketch(
    change: Change, run: Run, number: int, groups: Sequence[int], counts: IdCounts
) -> None:
    """Insert the sketch of a table as a sealed row, with the digest of what it added."""
    change.insert_sealed(
        SKETCHES,
        {
            "number": number,
            "release_id": run.release_id,
            "data_groups": json.dumps(groups),
            **recount_sketches(change.db, number, number)[number],
            "unknown_ids": counts.unknown,
            "renumbered": counts.renumbered,
        },
    )


def next_sketch_number(db: Transaction) -> int:
    """Return the number of the next sketch."""
    row = fetch_first(db, f"select coalesce(max(number), 0) + 1 from {SKETCHES}")
    assert row is not None
    return int(row[0])


def match_stored_records(
    db: Transaction, digests: RowDigests
) -> tuple[dict[int, float], dict[int, float]]:
    """Create temporary tables of the compared values and of the stored records that occur.

    Return how much of the table each group holds, the largest share first, and how much of another
    table it would seem to.
    """
    count_holders(db, digests)
    compared = find_distinct_rows(digests, digests.is_compared)
    store_values(db, COMPARED, digests, compared)
    match_rare_values(db)
    recognisable = count_recognisable(db, compared)
    shares: dict[int, float] = {}
    if recognisable:
        found = count_matches(db, compared)
        shares = {group: count / recognisable for group, count in found.items()}
    chances: dict[int, float] = {}
    for group, agreement in match_common_columns(db, digests, compared):
        chances[group] = max(chances.get(group, 0.0), agreement.chance)
        if recognisable:
            share = agreement.compute_share(recognisable / digests.sampled_share)
            shares[group] = max(shares.get(group, 0.0), share)
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0]))), chances


def find_groups(db: Transaction, run: Run, data: str) -> list[int]:
    """Return the groups of earlier runs of the same source, or of records with the same digest."""
    values = {"source": run.source_digest, "data": data}
    return [group for (group,) in db.execute(SAME_SOURCE, values).fetchall()]


def add_records(
    db: Transaction, digests: RowDigests, accounts: Names, number: int, group: int
) -> None:
    """Add the records of a table that its group does not have yet."""
    is_stored, values = digests.is_stored, {"sketch": number, "data_group": group}
    rows = find_distinct_rows(digests, is_stored)
    store_values(db, DRAWN, digests, rows)
    db.execute(FIND_KNOWN, {"data_group": group}).fetchall()
    db.execute(ADD_VALUES, values).fetchall()
    name, account = digests.names[is_stored], accounts[is_stored]
    copies = rows.copies[np.searchsorted(rows.names, name)]
    db.register(INCOMING, pa.table({"name": name, "account": account, "copies": copies}))
    db.execute(ADD_RECORDS, {**values, "sampled_share": digests.sampled_share}).fetchall()
    db.unregister(INCOMING)
    for table in (DRAWN, KNOWN):
        db.execute(f"drop table {table}").fetchall()
