"""Keyed digests of all cells of a table, written while the raw table is read for validation.

They let tables of a home be compared without storing a cell. The key of the home goes into every
digest; the name of a column does not go into the digests of its cells. A number has one digest
however it is written, to the precision of a 32-bit float, so that another file format changes
nothing.

Identifiers are left out, and so are columns that number the rows: they are equal in tables that
have nothing else in common. Derived columns are left out, because they repeat their sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ppdm_core.model.arrays import Bools, Floats
from warehouse.column_summary import find_kind
from warehouse.columns import RESERVED, Column
from warehouse.integrity.home_key import HomeKey
from warehouse.sql import (
    KEY,
    ROW,
    cast_to_number,
    cast_to_text,
    column_types,
    quote_name,
    register_once,
)

if TYPE_CHECKING:
    import duckdb

Digests = NDArray[np.uint64]

CELLS = f"{RESERVED}cells"  # temporary: position, key and cell digests of every record
INCOMING = f"{RESERVED}incoming"
NUMBER, TEXT = 1, 2  # what a digest was made from
MIN_NUMBERED = 10  # rows; fewer are in sequence by chance
MAX_GAPS = 2  # numbers for each row


@dataclass
class Places:
    """The numbers in a column, the times or the last digits of its texts, as far as they are read.

    They show whether a column numbers the rows of a table, by any step and with gaps.
    """

    first: int | None = None
    low: int = 0
    high: int = 0
    step: int = 0  # greatest common divisor of the differences
    are_whole: bool = True

    def add(self, numbers: Floats) -> None:
        """Add the numbers of further rows, NaN where there is none."""
        is_whole = (np.abs(numbers) < 2.0**62) & (numbers == np.floor(numbers))
        self.are_whole = self.are_whole and bool(is_whole.all())
        if not self.are_whole or not len(numbers):
            return
        whole = numbers.astype(np.int64)
        if self.first is None:
            self.first = self.low = self.high = int(whole[0])
        self.low, self.high = min(self.low, int(whole.min())), max(self.high, int(whole.max()))
        self.step = int(np.gcd.reduce([self.step, *np.unique(np.abs(whole - self.first))]))

    def can_number(self, n: int) -> bool:
        """Return whether the numbers are of ``n`` rows, provided that all of them differ."""
        if n < MIN_NUMBERED or not self.are_whole or self.step == 0:
            return False
        return n - 1 <= (self.high - self.low) // self.step < MAX_GAPS * n


class CellDigests:
    """The digests of a table, in a temporary table that a transaction makes and drops."""

    def __init__(
        self,
        db: duckdb.DuckDBPyConnection,
        raw_table: str,
        columns: tuple[Column, ...],
        key: HomeKey,
    ) -> None:
        types = column_types(db, raw_table)
        by_name = {column.name: column for column in columns}
        self.db, self.key, self.n = db, key, 0
        self.columns = [
            by_name[name]
            for name, type_name in types.items()
            if is_compared(by_name[name]) and find_kind(type_name) != "other"
        ]
        self.names = digest_names([column.name for column in self.columns], key)
        self.expressions = _list_expressions(self.columns, types)
        self._places = [Places() for _ in self.columns]
        digests = "".join(f", {quote_name(str(name))} ubigint" for name in self.names)
        db.execute(f"create temp table {CELLS} ({ROW} bigint, {KEY} blob{digests})").fetchall()

    def take(self, chunk: pa.Table) -> pa.Table:
        """Write the digests of further records; return the chunk without ``expressions``.

        The chunk has positions and keys, and the cells that ``expressions`` select.
        """
        names = iter(self.expressions)
        digests = {ROW: chunk.column(ROW), KEY: chunk.column(KEY)}
        for name, places in zip(self.names, self._places, strict=True):
            numbers = pc.fill_null(chunk.column(next(names)), np.nan).to_numpy()
            texts = chunk.column(next(names))
            places.add(numbers)
            is_text = pc.is_valid(texts).to_numpy()
            digests[str(name)] = digest_cells(
                numbers, pc.fill_null(texts, 0).to_numpy(), is_text, self.key
            )
        with register_once(self.db, INCOMING, pa.table(digests)):
            self.db.execute(f"insert into {CELLS} from {INCOMING}").fetchall()
        self.n += chunk.num_rows
        return chunk.drop_columns(list(self.expressions))

    def list_compared(self) -> list[int]:
        """Return the positions of the columns that do not number the rows."""
        return [i for i in range(len(self.columns)) if not self._numbers_rows(i)]

    def _numbers_rows(self, i: int) -> bool:
        if not self._places[i].can_number(self.n):
            return False
        query = f"select count(distinct {quote_name(str(self.names[i]))}) from {CELLS}"
        return bool(self.db.execute(query).fetchall()[0][0] == self.n)


def is_compared(column: Column) -> bool:
    """Return whether a column belongs to the source, and does not identify the record."""
    return column.role != "identifier" and column.derivation is None


def _list_expressions(columns: Sequence[Column], types: dict[str, str]) -> dict[str, str]:
    """Return SQL for each cell: its number or place, and a digest of its text if it is no number.

    The place is the time or the last digits of a text.
    """
    expressions = {}
    for i, column in enumerate(columns):
        number = cast_to_number(column.name, types[column.name])
        text = f"trim({cast_to_text(column.name)})"
        expressions[f"{RESERVED}n{i}"] = (
            f"coalesce({number}, epoch(try_cast({text} as timestamp)), "
            f"try_cast(regexp_extract({text}, '(\\d+)\\D*$', 1) as double))"
        )
        expressions[f"{RESERVED}t{i}"] = (
            f"case when not coalesce(isfinite({number}), false) then md5_number_lower({text}) end"
        )
    return expressions


def digest_cells(numbers: Floats, texts: Digests, is_text: Bools, key: HomeKey) -> Digests:
    """Return a keyed digest of each cell, 0 where it is missing.

    ``texts`` are digests without a key; where there is none, the cell is a number or missing (NaN).
    """
    is_number = np.isfinite(numbers) & ~is_text
    with np.errstate(over="ignore", invalid="ignore"):
        short = numbers.astype(np.float32).astype(np.float64)
    values = np.where(np.isfinite(short), short, numbers) + 0.0  # -0.0 becomes 0.0
    words = np.empty((len(numbers), 2), dtype="<u8")
    words[:, 0] = np.where(is_text, texts, values.view(np.uint64))
    words[:, 1] = np.where(is_text, TEXT, NUMBER)
    cipher = Cipher(algorithms.AES(key.derive(b"ppdm sketches")), modes.ECB()).encryptor()
    digests = np.frombuffer(cipher.update(words.tobytes()), dtype="<u8").reshape(-1, 2)[:, 0]
    return np.where(is_number | is_text, digests, np.uint64(0))


def digest_names(names: Sequence[str], key: HomeKey) -> Digests:
    """Return a keyed digest of each name."""
    secret = key.derive(b"ppdm columns")
    digests = [hashlib.blake2b(name.encode(), key=secret, digest_size=8) for name in names]
    return np.array([int.from_bytes(each.digest(), "little") for each in digests], dtype=np.uint64)
