"""What the warehouse keeps of the records of every validated table, to recognise them later.

Tables that hold the same data form a data group: a table belongs to each group that holds at least
half of its records, and to those of earlier runs of the same source or records; otherwise it begins
a group. It adds the records that its group does not have yet, so that a table with few changes
adds little. Nothing is ever removed. A sealed row records what each table added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ppdm_core.model.arrays import Names
from warehouse.columns import RESERVED, Column
from warehouse.database import fetch_first
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import integrity_error, read_sealed_rows
from warehouse.same_data.common_columns import COLUMNS, Places, match_common_columns
from warehouse.same_data.matching import (
    COMPARED,
    INCOMING,
    MATCHES,
    MIN_SHARE,
    WHOLE_ROW,
    compute_shares,
    estimate_chances,
    find_distinct_rows,
    match_rare_values,
    store_values,
)
from warehouse.same_data.renumbered import AccountNames, IdCounts, count_renumbered
from warehouse.same_data.row_digests import RowDigests, read_row_digests
from warehouse.tables import EVENTS, RUNS, SKETCHES, STORED_RECORDS, STORED_VALUES, raw_table

if TYPE_CHECKING:
    from warehouse.database import Change, Run
    from warehouse.transaction import Transaction

DRAWN = f"{RESERVED}drawn"
PLACES = pa.schema([("place", pa.int32()), ("number", pa.int32())])
RECORD_TYPES = {
    "name": "<u8",
    "account": "<u8",
    "data_group": "<i4",
    "copies": "<i8",
    "rate": "<f8",
}
VALUE_TYPES = {
    "name": "<u8",
    "place": "<i4",
    "digest": "<u8",
    "data_group": "<i4",
    "is_rare": "u1",
}
SAME_SOURCE = f"""
select distinct unnest(data_groups::integer[]) as data_group
from {SKETCHES} join {RUNS} using (release_id) left join {EVENTS} e using (release_id)
where source_digest = $source or json_extract_string(e.detail, '$.data') = $data
order by data_group
"""
# Records that were recognised keep the name and the values that are stored.
ADD_VALUES = f"""
insert into {STORED_VALUES}
with known as (
    select name from {STORED_VALUES} where data_group = $data_group
    union
    select name from {MATCHES} where data_group = $data_group
),
numbers as (
    select coalesce(max(place), -1) + 1 as next from {STORED_VALUES} where data_group = $data_group
)
select
    $sketch, $data_group, name,
    if(place = {WHOLE_ROW}, place, coalesce(number, place + next)), digest, is_rare
from {{values}} cross join numbers left join {COLUMNS} using (place) anti join known using (name)
where is_rare or $rate = 1
"""
ADD_RECORDS = f"""
insert into {STORED_RECORDS}
with known as (select name, account from {STORED_RECORDS} where data_group = $data_group),
recognised as (
    select name, coalesce(max(stored) filter (stored = name), min(stored)) as stored
    from {MATCHES} where data_group = $data_group group by name
),
incoming as (
    select coalesce(stored, name) as name, account, copies
    from {INCOMING} left join recognised using (name)
)
select $sketch, $data_group, name, account, min(copies), $rate
from incoming anti join known using (name, account)
group by name, account
"""


def store_sketch(
    change: Change,
    run: Run,
    columns: tuple[Column, ...],
    record_id: str | None,
    *,
    n: int,
    data: str,
    names: AccountNames,
) -> None:
    """Recognise the records of a validated table, and store those that are new.

    ``n`` is the number of its records and ``data`` their digest.
    """
    db = change.db
    check_sketches(db)
    digests = read_row_digests(db, raw_table(run), columns, record_id, n, home_key(db))
    accounts = names.from_ids(digests.ids) if record_id else np.zeros(len(digests.names), "u8")
    shares, common = match_stored_records(db, digests)
    groups = [group for group, share in shares.items() if share >= MIN_SHARE]
    groups += [group for group in find_groups(db, run, data) if group not in groups]
    counts = count_renumbered(db, run, digests, accounts, names) if record_id else IdCounts()
    row = fetch_first(db, f"select coalesce(max(number), 0) + 1 from {SKETCHES}")
    assert row is not None
    number = int(row[0])
    group = groups[0] if groups else number
    add_records(db, digests, accounts, number, group, common.get(group, {}))
    for table in (COMPARED, MATCHES):
        db.execute(f"drop table {table}").fetchall()
    change.insert_sealed(
        SKETCHES,
        {
            "number": number,
            "release_id": run.release_id,
            "data_groups": json.dumps(groups or [number]),
            **recount_sketch(db, number),
            "unknown_ids": counts.unknown,
            "renumbered": counts.renumbered,
        },
    )


def match_stored_records(
    db: Transaction, digests: RowDigests
) -> tuple[dict[int, float], dict[int, Places]]:
    """Create temporary tables of the compared values and of the stored records that occur.

    Return how much of the table each group holds, and which columns they have in common.
    """
    compared = find_distinct_rows(digests, digests.is_compared)
    store_values(db, COMPARED, digests, compared)
    is_complete = digests.rate == 1
    match_rare_values(db, is_complete)
    common, chances = match_common_columns(db, compared) if is_complete else ({}, {})
    return compute_shares(db, compared, {**estimate_chances(db), **chances}), common


def find_groups(db: Transaction, run: Run, data: str) -> list[int]:
    """Return the groups of earlier runs of the same source, or of records with the same digest."""
    values = {"source": run.source_digest, "data": data}
    return [group for (group,) in db.execute(SAME_SOURCE, values).fetchall()]


def add_records(
    db: Transaction,
    digests: RowDigests,
    accounts: Names,
    number: int,
    group: int,
    common: Places,
) -> None:
    """Add the records of a table that its group does not have yet."""
    is_stored, values = digests.is_stored, {"sketch": number, "data_group": group}
    rows = find_distinct_rows(digests, is_stored)
    if digests.rate < 1:
        store_values(db, DRAWN, digests, rows)
    places = {"place": list(common), "number": list(common.values())}
    db.register(COLUMNS, pa.table(places, schema=PLACES))
    table = DRAWN if digests.rate < 1 else COMPARED
    db.execute(ADD_VALUES.format(values=table), {**values, "rate": digests.rate}).fetchall()
    db.unregister(COLUMNS)
    if digests.rate < 1:
        db.execute(f"drop table {DRAWN}").fetchall()
    name, account = digests.names[is_stored], accounts[is_stored]
    copies = rows.copies[np.searchsorted(rows.names, name)]
    db.register(INCOMING, pa.table({"name": name, "account": account, "copies": copies}))
    db.execute(ADD_RECORDS, {**values, "rate": digests.rate}).fetchall()
    db.unregister(INCOMING)


def recount_sketch(db: Transaction, number: int) -> dict[str, Any]:
    """Return what a sketch says of what it added, computed from that."""
    digest, counts = hashlib.sha256(), []
    for table, columns in (
        (STORED_RECORDS, RECORD_TYPES),
        (STORED_VALUES, VALUE_TYPES),
    ):
        names = ", ".join(columns)
        found = db.execute(
            f"select {names} from {table} where sketch = ? order by {names}", [number]
        ).fetchnumpy()
        for name, kind in columns.items():
            digest.update(found[name].astype(kind).tobytes())
        counts.append(len(found["name"]))
    return {"records": counts[0], "record_values": counts[1], "digest": digest.hexdigest()}


def check_sketches(db: Transaction, events: Sequence[Any] = ()) -> None:
    """Check that every stored record is as it was written, and that none is missing."""
    sketches = read_sealed_rows(db, SKETCHES)
    for sketch in sketches:
        recount = recount_sketch(db, sketch["number"])
        if any(sketch[name] != value for name, value in recount.items()):
            raise integrity_error(
                f"The records that {sketch['release_id']} is recognised by were changed."
            )
    numbers = [sketch["number"] for sketch in sketches]
    for table in (STORED_RECORDS, STORED_VALUES):
        query = f"select count(*) from {table} where not list_contains(?, sketch)"
        if fetch_first(db, query, [numbers]) != (0,):
            raise integrity_error("There are records to recognise that belong to no table.")
    if len(set(numbers)) != len(numbers):
        raise integrity_error("Two tables have the same records to recognise.")
