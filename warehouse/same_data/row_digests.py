"""Keyed digests of the cells and rows of a raw table.

They let tables of a home be compared without storing a cell. The key of the home goes into every
digest; the name of a column does not go into the digests of its cells. A number has one digest
however it is written, to the precision of a 32-bit float, so that another file format changes
nothing.

Identifiers are left out, and so are columns that number the rows: they are equal in tables that
have nothing else in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ppdm_core.model.arrays import Bools, Floats
from warehouse.column_summary import find_kind
from warehouse.columns import RESERVED, Column
from warehouse.integrity.home_key import HomeKey
from warehouse.sql import (
    ROW,
    build_row_filter,
    cast_to_number,
    cast_to_text,
    column_types,
    hide_values,
    quote_name,
)

if TYPE_CHECKING:
    import duckdb

Digests = NDArray[np.uint64]

MAX_RECORDS = 50_000  # of a table that are stored, and as many that are compared
MAX_CELLS = 2_000_000  # of the same: wide tables have fewer records
NUMBER, TEXT = 1, 2  # what a digest was made from
FACTOR = 0x9E3779B97F4A7C15  # odd; its powers tell the columns of a row apart
MIN_NUMBERED = 10  # rows; fewer are in sequence by chance
MAX_GAPS = 2  # numbers for each row
# Equal rows have equal ranks, so that all copies of a row are drawn, and again in later releases.
# The ranks of the two samples are independent.
SAMPLE = """
with records as (
    select *, hash($secret::ubigint, {released}) as {own}rank from {table} where {kept}
)
select {identity} as {own}identity, {own}rank <= $limit as {own}is_stored,
    hash({own}rank) <= $limit as {own}is_compared{cells}
from records
where {own}rank <= $limit or hash({own}rank) <= $limit
order by {row}
"""


@dataclass(frozen=True, eq=False)
class RowDigests:
    """The digests of a random sample of the rows of a table."""

    columns: Digests  # (d,) of the names of the columns
    cells: Digests  # (n, d), 0 for a missing cell
    rows: Digests  # (n, 3), of complete rows: see ``digest_rows``
    is_stored: Bools  # (n,)
    is_compared: Bools  # (n,)
    sampled_share: float  # share of the table in each of the two samples
    ids: list[bytes]  # empty without a record id

    @property
    def names(self) -> Digests:  # (n,)
        """One name for each row, equal for rows that are equal in all features and the label."""
        return self.rows[:, 0]


@hide_values("Reading the records to compare")
def read_row_digests(
    db: duckdb.DuckDBPyConnection,
    table: str,
    columns: tuple[Column, ...],
    record_id: str | None,
    n: int,
    key: HomeKey,
) -> RowDigests:
    """Return the digests of the rows of a raw table that are not dropped, at most ``MAX_RECORDS``.

    ``n`` is the number of these rows; with more, two random samples are drawn.
    """
    types = column_types(db, table)
    by_name = {column.name: column for column in columns}
    used = [
        by_name[name]
        for name, type_name in types.items()
        if by_name[name].role != "identifier" and find_kind(type_name) != "other"
    ]
    sampled_share = min(1.0, MAX_RECORDS / n, MAX_CELLS / (n * len(used)))
    statement = SAMPLE.format(
        released=", ".join(quote_name(column.name) for column in used if _is_released(column)),
        table=table,
        kept=build_row_filter(columns),
        identity=f"encode({cast_to_text(record_id)})" if record_id else "null",
        cells="".join(_list_cells(used, types)),
        row=ROW,
        own=RESERVED,
    )
    secret = int.from_bytes(key.derive(b"ppdm samples")[:8], "little")
    limit = min(2**64 - 1, int(sampled_share * 2**64))
    found = db.execute(statement, {"secret": secret, "limit": limit}).fetchnumpy()

    def read(letter: str, i: int) -> Floats:
        return np.ma.filled(found[f"{RESERVED}{letter}{i}"].astype(np.float64), np.nan)

    kept = [(i, column) for i, column in enumerate(used) if not is_row_number(read("r", i), n)]
    cells = [digest_cells(read("x", i), found[f"{RESERVED}t{i}"], key) for i, _ in kept]
    shape = (len(found[f"{RESERVED}is_stored"]), len(kept))
    matrix = np.column_stack(cells) if cells else np.zeros(shape, dtype=np.uint64)
    return RowDigests(
        columns=digest_names([column.name for _, column in kept], key),
        cells=matrix,
        rows=digest_rows(matrix, [_is_released(column) for _, column in kept]),
        is_stored=found[f"{RESERVED}is_stored"].astype(np.bool_),
        is_compared=found[f"{RESERVED}is_compared"].astype(np.bool_),
        sampled_share=sampled_share,
        ids=[bytes(identity) for identity in found[f"{RESERVED}identity"]] if record_id else [],
    )


def _is_released(column: Column) -> bool:
    return column.role in ("feature", "label")


def _list_cells(columns: Sequence[Column], types: dict[str, str]) -> list[str]:
    """Return SQL for each cell: its number, a digest of any other text, its place in a sequence.

    The place is the number, the time or the last digits of the cell.
    """
    cells = []
    for i, column in enumerate(columns):
        number = cast_to_number(column.name, types[column.name])
        text = f"trim({cast_to_text(column.name)})"
        cells.append(
            f", {number} as {RESERVED}x{i}, "
            f"case when not coalesce(isfinite({number}), false) "
            f"then md5_number_lower({text}) end as {RESERVED}t{i}, "
            f"coalesce({number}, epoch(try_cast({text} as timestamp)), "
            f"try_cast(regexp_extract({text}, '(\\d+)\\D*$', 1) as double)) as {RESERVED}r{i}"
        )
    return cells


def is_row_number(numbers: Floats, n: int) -> bool:
    """Return whether a column numbers the rows of a table, by any step and with gaps.

    ``numbers`` are of a sample, NaN where a cell is missing.
    """
    is_whole = bool(np.all(np.abs(numbers) < 2.0**62) and np.all(numbers == np.floor(numbers)))
    if len(numbers) < MIN_NUMBERED or not is_whole:
        return False
    steps = np.diff(np.sort(numbers.astype(np.int64)))
    return bool(steps.min() > 0 and steps.sum() / np.gcd.reduce(steps) < MAX_GAPS * n)


def digest_cells(numbers: Floats, texts: Any, key: HomeKey) -> Digests:
    """Return a keyed digest of each cell, 0 where it is missing.

    ``texts`` are digests without a key, masked where a cell is a number or missing.
    """
    is_number = np.isfinite(numbers)
    is_text = ~is_number & ~np.ma.getmaskarray(texts)
    with np.errstate(over="ignore"):
        short = numbers.astype(np.float32).astype(np.float64)
    values = np.where(np.isfinite(short), short, numbers) + 0.0  # -0.0 becomes 0.0
    words = np.zeros((len(numbers), 2), dtype="<u8")
    words[is_number] = np.column_stack([values.view("<u8"), np.full(len(numbers), NUMBER)])[
        is_number
    ]
    words[is_text, 0] = np.ma.getdata(texts)[is_text]
    words[is_text, 1] = TEXT
    cipher = Cipher(algorithms.AES(key.derive(b"ppdm sketches")), modes.ECB()).encryptor()
    digests = np.frombuffer(cipher.update(words.tobytes()), dtype="<u8").reshape(-1, 2)[:, 0]
    return np.where(is_number | is_text, digests, np.uint64(0))


def digest_names(names: Sequence[str], key: HomeKey) -> Digests:
    """Return a keyed digest of each name."""
    secret = key.derive(b"ppdm columns")
    digests = [hashlib.blake2b(name.encode(), key=secret, digest_size=8) for name in names]
    return np.array([int.from_bytes(each.digest(), "little") for each in digests], dtype=np.uint64)


def digest_rows(cells: Digests, is_released: Sequence[bool]) -> Digests:  # (n, 3)
    """Return three digests of each complete row.

    Of features and label; of these in any order of the columns; of all columns.
    """
    released = cells[:, np.asarray(is_released, dtype=np.bool_)]

    def weigh(part: Digests) -> Digests:
        factors = np.cumprod(np.full(part.shape[1], FACTOR, dtype=np.uint64))
        return np.asarray((part * factors).sum(axis=1, dtype=np.uint64))

    return np.column_stack([weigh(released), released.sum(axis=1, dtype=np.uint64), weigh(cells)])
