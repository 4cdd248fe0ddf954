"""A random sample of the records of a table, and how many records hold each of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ppdm_core.model.arrays import Bools, Ints, Keys
from warehouse.columns import RESERVED
from warehouse.same_data.cell_digests import CELLS, INCOMING, CellDigests, Digests
from warehouse.sql import KEY, ROW, hide_values, quote_name
from warehouse.tables import STORED_VALUES

if TYPE_CHECKING:
    import duckdb

MAX_RECORDS = 50_000  # of a table that are stored, and as many that are compared
MAX_CELLS = 2_000_000  # of the same: wide tables have fewer records
FACTOR = 0x9E3779B97F4A7C15  # odd; its powers tell the columns of a row apart
MIN_COMMON_COUNT_SHARE = 0.5  # of the rows that are there as often
HOLDERS = f"{RESERVED}holders"  # temporary: in how many records a column has a value
# Equal rows have equal ranks, so that all copies of a row are drawn, and again in later releases.
# The ranks of the two samples are independent.
SAMPLE = """
with records as (select *, hash($secret::ubigint{released}) as {own}rank from {table})
select {key}, {own}rank <= $limit as {own}is_stored, hash({own}rank) <= $limit as {own}is_compared
    {cells}
from records
where {own}rank <= $limit or hash({own}rank) <= $limit
order by {row}
"""
# Counted are the values that are sampled or stored; a missing cell is neither.
COUNT_HOLDERS = f"""
create temp table {HOLDERS} as
with needed as (select digest from {INCOMING} union select digest from {STORED_VALUES}),
cells as (
    unpivot (select {{cells}} from {CELLS}) on columns(*) into name column_name value digest
)
select column_name::ubigint as column_name, digest, count(*) as holders
from cells semi join needed using (digest)
group by all
"""


@dataclass(frozen=True, eq=False)
class RowDigests:
    """The digests of a random sample of the rows of a table."""

    n: int  # rows of the table
    columns: Digests  # (d,) of the names of the columns
    cells: Digests  # (m, d), 0 for a missing cell
    names: Digests  # (m,), equal for rows that are equal in all features and the label
    keys: Keys  # (m, 16)
    is_stored: Bools  # (m,)
    is_compared: Bools  # (m,)
    sampled_share: float  # share of the table in each of the two samples


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows among the drawn ones; equal rows have one name."""

    first: Ints  # (m,) index of the first row of each name
    names: Digests  # (m,)
    copies: Ints  # (m,) rows of each name, divided by ``common_count``
    common_count: int  # how often most rows are there

    def to_arrow(self) -> pa.Table:
        """Return names and copies."""
        return pa.table({"name": self.names, "copies": self.copies})


@hide_values("Reading the records to compare")
def read_row_digests(cells: CellDigests) -> RowDigests:
    """Return the digests of all rows; of more than ``MAX_RECORDS``, two random samples."""
    db, n = cells.db, cells.n
    quoted = [quote_name(str(name)) for name in cells.names]
    is_released = [column.role in ("feature", "label") for column in cells.columns]
    sampled_share = min(1.0, MAX_RECORDS / n, MAX_CELLS / (n * max(1, len(quoted))))
    statement = SAMPLE.format(
        released="".join(f", {name}" for name, has in zip(quoted, is_released, strict=True) if has),
        table=CELLS,
        key=KEY,
        cells="".join(f", {name}" for name in quoted),
        row=ROW,
        own=RESERVED,
    )
    secret = int.from_bytes(cells.key.derive(b"ppdm samples")[:8], "little")
    limit = min(2**64 - 1, int(sampled_share * 2**64))
    found = db.execute(statement, {"secret": secret, "limit": limit}).fetchnumpy()
    kept = cells.list_compared()
    matrix = np.zeros((len(found[KEY]), len(kept)), dtype=np.uint64)
    for place, i in enumerate(kept):
        matrix[:, place] = found[str(cells.names[i])]
    return RowDigests(
        n=n,
        columns=cells.names[kept],
        cells=matrix,
        names=name_rows(matrix[:, [is_released[i] for i in kept]]),
        keys=np.frombuffer(b"".join(map(bytes, found[KEY])), dtype=np.uint8).reshape(-1, 16),
        is_stored=found[f"{RESERVED}is_stored"].astype(np.bool_),
        is_compared=found[f"{RESERVED}is_compared"].astype(np.bool_),
        sampled_share=sampled_share,
    )


def name_rows(cells: Digests) -> Digests:  # (n, d) -> (n,)
    """Return a digest of each row, in which the order of the columns counts."""
    factors = np.cumprod(np.full(cells.shape[1], FACTOR, dtype=np.uint64))
    return np.asarray((cells * factors).sum(axis=1, dtype=np.uint64))


def find_distinct_rows(digests: RowDigests, is_drawn: Bools) -> DistinctRows:
    """Return the distinct rows among those that are drawn."""
    drawn = np.flatnonzero(is_drawn)
    names, first, copies = np.unique(digests.names[drawn], return_index=True, return_counts=True)
    count = find_common_count(copies)
    return DistinctRows(drawn[first], names, -(-copies // count), count)


def find_common_count(copies: Ints) -> int:
    """Return how often most rows of a table are there, 1 if there is no such number.

    A table in which every row is written eight times is like the table with one of each.
    """
    count = int(np.median(copies)) if len(copies) else 1
    return count if np.mean(copies == count) >= MIN_COMMON_COUNT_SHARE else 1


def count_holders(db: duckdb.DuckDBPyConnection, digests: RowDigests) -> None:
    """Create a temporary table of how many records of the whole table hold each value."""
    if not len(digests.columns):
        columns = "column_name ubigint, digest ubigint, holders bigint"
        db.execute(f"create temp table {HOLDERS} ({columns})").fetchall()
        return
    cells = ", ".join(quote_name(str(name)) for name in digests.columns)
    sampled = np.unique(digests.cells)
    db.register(INCOMING, pa.table({"digest": sampled[sampled != 0]}))
    db.execute(COUNT_HOLDERS.format(cells=cells)).fetchall()
    db.unregister(INCOMING)
