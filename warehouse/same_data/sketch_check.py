"""The check that the stored records, by which later tables are recognised, were not changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from warehouse.database import fetch_first
from warehouse.integrity.seals import integrity_error, read_sealed_rows
from warehouse.tables import SKETCHES, STORED_RECORDS, STORED_VALUES

if TYPE_CHECKING:
    from warehouse.transaction import Transaction

MAX_CHECKED_ROWS = 2_000_000  # in memory at a time
RECORD_TYPES = {
    "name": "<u8",
    "account": "<u8",
    "data_group": "<i4",
    "copies": "<i8",
    "sampled_share": "<f8",
}
VALUE_TYPES = {
    "name": "<u8",
    "column_name": "<u8",
    "digest": "<u8",
    "data_group": "<i4",
    "share": "<f8",
    "is_rare": "u1",
}


def recount_sketches(db: Transaction, first: int, last: int) -> dict[int, dict[str, Any]]:
    """Return what the sketches of these numbers say of what they added, computed from that."""
    numbers = range(first, last + 1)
    digests = {number: hashlib.sha256() for number in numbers}
    counts: dict[str, list[int]] = {}
    for table, types in ((STORED_RECORDS, RECORD_TYPES), (STORED_VALUES, VALUE_TYPES)):
        names = ", ".join(types)
        found = db.execute(
            f"select sketch, {names} from {table} where sketch between ? and ? "
            f"order by sketch, {names}",
            [first, last],
        ).fetchnumpy()
        ends = np.searchsorted(found["sketch"], [*numbers, last + 1])
        counts[table] = np.diff(ends).tolist()
        for number, start, stop in zip(numbers, ends, ends[1:], strict=False):
            for name, kind in types.items():
                digests[number].update(found[name][start:stop].astype(kind).tobytes())
    return {
        number: {
            "records": counts[STORED_RECORDS][i],
            "record_values": counts[STORED_VALUES][i],
            "digest": digests[number].hexdigest(),
        }
        for i, number in enumerate(numbers)
    }


def check_sketches(db: Transaction, events: Sequence[Any] = ()) -> None:
    """Check that every stored record is as it was written, and that none is missing."""
    sketches = sorted(read_sealed_rows(db, SKETCHES), key=itemgetter("number"))
    numbers = [sketch["number"] for sketch in sketches]
    if numbers != list(range(1, len(numbers) + 1)):
        raise integrity_error("The records of a table are missing, or are there twice.")
    for batch in split_sketches(sketches):
        found = recount_sketches(db, batch[0]["number"], batch[-1]["number"])
        for sketch in batch:
            recount = found[sketch["number"]]
            if any(sketch[name] != value for name, value in recount.items()):
                raise integrity_error(
                    f"The records that {sketch['release_id']} is recognised by were changed."
                )
    for table in (STORED_RECORDS, STORED_VALUES):
        query = f"select count(*) from {table} where sketch not between 1 and ?"
        if fetch_first(db, query, [len(numbers)]) != (0,):
            raise integrity_error("There are records to recognise that belong to no table.")


def split_sketches(sketches: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the sketches in batches that fit into memory."""
    batch: list[Mapping[str, Any]] = []
    size = 0
    for sketch in sketches:
        size += sketch["records"] + sketch["record_values"]
        if batch and size > MAX_CHECKED_ROWS:
            yield batch
            batch, size = [], sketch["records"] + sketch["record_values"]
        batch.append(sketch)
    if batch:
        yield batch
