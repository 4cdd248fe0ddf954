"""Tables as canonical blocks.

Arithmetic always runs on blocks of exactly ``BLOCK`` rows (the last may be shorter), whatever the
size of the stored chunks: BLAS rounds differently for other row counts, and a release must not
depend on how its input is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce as fold
from typing import Protocol, TypeVar

import numpy as np

from ppdm_core.model.arrays import Codes, Floats, Ints, Keys
from ppdm_core.model.schema import Schema

BLOCK = 16_384
S = TypeVar("S")
COLUMNS = ("X", "C", "label", "key", "record")  # fields of a block with one entry per row


@dataclass(frozen=True, eq=False)
class Block:
    """Rows ``[start, start + n)`` of a table."""

    X: Floats  # (n, d) clamped and scaled, finite, no -0.0
    C: Codes  # (n, c) codes into schema.categorical, -1 = missing; the core holds no strings
    label: Codes  # (n,) codes, -1 = none
    key: Keys  # (n, 16) keyed digest of the record id
    record: Ints  # (n,) position in the table of the record that each row was made from
    start: int
    counts: Mapping[str, int] = field(default_factory=dict)  # by the steps since it was stored

    @property
    def n(self) -> int:
        return len(self.X)


class Rows(Protocol):
    """A table as a sequence of blocks, wherever it is stored.

    A step is a pure function of a block: it may run in another process, twice, or in any order. A
    step that counts something adds it to ``Block.counts``.
    """

    @property
    def schema(self) -> Schema: ...
    @property
    def n(self) -> int: ...
    @property
    def counts(self) -> Mapping[str, int]: ...  # by all steps that made these rows
    def blocks(self) -> Iterator[Block]: ...
    def reduce(self, step: Callable[[Block], S], merge: Callable[[S, S], S]) -> S: ...
    def map(self, step: Callable[[Block], Block], schema: Schema) -> Rows: ...


def add_counts(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    """Return the sums by name; a name that one mapping lacks counts as 0 there."""
    return {name: a.get(name, 0) + b.get(name, 0) for name in (*a, *b)}


def sum_counts(blocks: Iterable[Block]) -> dict[str, int]:
    """Return what the steps that made these blocks counted, summed by name."""
    return fold(add_counts, (block.counts for block in blocks), {})


def concatenate_blocks(blocks: list[Block], start: int) -> Block:
    """Return one block of all rows, in order, that begins at row ``start``."""
    if len(blocks) == 1:
        return replace(blocks[0], start=start)
    return Block(
        X=np.concatenate([block.X for block in blocks]),
        C=np.concatenate([block.C for block in blocks]),
        label=np.concatenate([block.label for block in blocks]),
        key=np.concatenate([block.key for block in blocks]),
        record=np.concatenate([block.record for block in blocks]),
        start=start,
        counts=sum_counts(blocks),
    )


def gather_blocks(blocks: Iterable[Block], n: int) -> Block:
    """Return one block of all rows; ``n`` is the expected number of rows.

    Blocks are copied as they arrive, so that no block is held twice.
    """
    arrays: dict[str, np.ndarray] = {}
    counts: dict[str, int] = {}
    count = 0

    def resize(size: int) -> None:
        for array in arrays.values():
            array.resize((size, *array.shape[1:]), refcheck=False)  # there is no other reference

    for block in blocks:
        parts = {name: getattr(block, name) for name in COLUMNS}
        if not arrays:
            arrays = {name: np.empty((n, *a.shape[1:]), a.dtype) for name, a in parts.items()}
        end = count + block.n
        if end > len(arrays["X"]):
            resize(max(end, len(arrays["X"]) * 5 // 4))
        for name, array in parts.items():
            arrays[name][count:end] = array
        counts = add_counts(counts, block.counts)
        count = end
    resize(count)
    return Block(**arrays, start=0, counts=counts)


def load_rows(blocks: Iterable[Block], schema: Schema, n: int) -> ArrayRows:
    """Return blocks as a table in memory; ``n`` is about the number of rows."""
    whole = gather_blocks(blocks, n)
    return ArrayRows(
        schema, whole.X, whole.label, whole.key, whole.C, whole.record, dict(whole.counts)
    )


def slice_rows(block: Block, low: int, high: int) -> Block:
    """Return rows ``[low, high)``. Counts stay with the first row, so that sums do not change."""
    part = slice(low, high)
    return Block(
        X=block.X[part],
        C=block.C[part],
        label=block.label[part],
        key=block.key[part],
        record=block.record[part],
        start=block.start + low,
        counts=block.counts if low == 0 else {},
    )


def select_rows(block: Block, keep: np.ndarray) -> Block:
    """Return the rows that ``keep``, a mask or an array of positions, selects."""
    return Block(
        X=block.X[keep],
        C=block.C[keep],
        label=block.label[keep],
        key=block.key[keep],
        record=block.record[keep],
        start=block.start,
        counts=block.counts,
    )


def regroup_blocks(chunks: Iterable[Block], size: int = BLOCK, start: int = 0) -> Iterator[Block]:
    """Yield the rows of chunks of any size as blocks of ``size`` rows; the first is ``start``."""
    held: list[Block] = []
    count = 0
    for chunk in chunks:
        while chunk.n:
            part = slice_rows(chunk, 0, min(chunk.n, size - count))
            held.append(part)
            count += part.n
            chunk = slice_rows(chunk, part.n, chunk.n)
            if count == size:
                yield concatenate_blocks(held, start)
                start += count
                held, count = [], 0
    if held:
        yield concatenate_blocks(held, start)


def fold_blocks(
    blocks: Iterable[Block], step: Callable[[Block], S], merge: Callable[[S, S], S]
) -> S:
    """Return the results of ``step``, merged in block order in a fixed binary tree."""
    return merge_rest(join_states(((1, step(block)) for block in blocks), merge), merge)


def join_states(
    states: Iterable[tuple[int, S]], merge: Callable[[S, S], S], first: int = 0
) -> list[tuple[int, S]]:
    """Merge states of consecutive blocks, of which ``first`` is the number of the first one.

    A state comes with its number of blocks. States of 1, 2, 4, ... blocks are merged where both are
    children of a node of one binary tree over all blocks, so that rounding depends on the number of
    blocks alone, wherever states are computed; and few states are held.
    """
    held: list[tuple[int, S]] = []
    end = first
    for size, state in states:
        end += size
        while held and held[-1][0] == size and end % (2 * size) == 0:
            state = merge(held.pop()[1], state)
            size *= 2
        held.append((size, state))
    return held


def merge_rest(held: list[tuple[int, S]], merge: Callable[[S, S], S]) -> S:
    """Merge the states of all blocks that ``join_states`` returns, the last ones first."""
    return fold(lambda later, earlier: merge(earlier, later), (state for _, state in held[::-1]))


class ArrayRows:
    """A table in memory."""

    def __init__(
        self,
        schema: Schema,
        X: Floats,
        label: Codes | None = None,
        key: Keys | None = None,
        C: Codes | None = None,
        record: Ints | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        n = len(X)
        self.schema = schema
        self.counts = counts or {}
        self.whole = Block(
            X=np.ascontiguousarray(X, dtype=np.float64),
            C=np.zeros((n, 0), dtype=np.int32) if C is None else C,
            label=np.full(n, -1, dtype=np.int32) if label is None else label,
            key=make_position_keys(n) if key is None else key,
            record=np.arange(n) if record is None else record,
            start=0,
        )

    @property
    def n(self) -> int:
        return self.whole.n

    def blocks(self) -> Iterator[Block]:
        return regroup_blocks([self.whole])

    def reduce(self, step: Callable[[Block], S], merge: Callable[[S, S], S]) -> S:
        return fold_blocks(self.blocks(), step, merge)

    def map(self, step: Callable[[Block], Block], schema: Schema) -> ArrayRows:
        whole = gather_blocks((step(block) for block in self.blocks()), self.n)
        counts = add_counts(self.counts, whole.counts)
        return ArrayRows(schema, whole.X, whole.label, whole.key, whole.C, whole.record, counts)


class RowsView:
    """Rows with a step applied in every pass, without storing the result.

    For cheap steps that keep the number and the order of the rows. A later ``map`` or ``reduce``
    runs in the same pass.
    """

    def __init__(self, rows: Rows, step: Callable[[Block], Block], schema: Schema) -> None:
        self.rows, self.step, self.schema = rows, step, schema

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def counts(self) -> dict[str, int]:
        """What the steps of the stored rows counted, plus what this view counts in one pass."""
        stored = self.rows
        while isinstance(stored, RowsView):
            stored = stored.rows
        return add_counts(stored.counts, sum_counts(self.blocks()))

    @property
    def whole(self) -> Block:
        """All rows in one block, for small tables."""
        return gather_blocks(self.blocks(), self.n)

    def blocks(self) -> Iterator[Block]:
        return map(self.step, self.rows.blocks())

    def reduce(self, step: Callable[[Block], S], merge: Callable[[S, S], S]) -> S:
        return self.rows.reduce(lambda block: step(self.step(block)), merge)

    def map(self, step: Callable[[Block], Block], schema: Schema) -> Rows:
        return self.rows.map(lambda block: step(self.step(block)), schema)


def make_position_keys(n: int) -> Keys:
    """Return the row positions as record keys, for tables without record ids."""
    return encode_positions(np.arange(n))


def encode_positions(positions: Ints) -> Keys:
    """Return positions of rows as record keys, (n, 16)."""
    keys = np.zeros((len(positions), 16), dtype=np.uint8)
    keys[:, :8] = positions.astype("<u8").view(np.uint8).reshape(-1, 8)
    return keys


def multiply_padded(X: Floats, A: Floats) -> Floats:
    """Return ``X @ A``, rounded equally for a record at any position of any block."""
    if len(X) == BLOCK:
        return X @ A
    full = np.zeros((BLOCK, X.shape[1]))
    full[: len(X)] = X
    product: Floats = (full @ A)[: len(X)]
    return product
