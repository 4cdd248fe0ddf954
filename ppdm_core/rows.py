"""Tables as canonical blocks.

Arithmetic always runs on blocks of exactly ``BLOCK`` rows (the last may be shorter), whatever
chunks the storage hands over: BLAS rounds differently for other row counts, and a release must
not depend on how its input happened to be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce as fold

import numpy as np

from ppdm_core.types import Block, Codes, Floats, Ints, Keys, S, Schema

BLOCK = 16_384


def concatenate(blocks: list[Block], start: int) -> Block:
    if len(blocks) == 1:
        return replace(blocks[0], start=start)
    return Block(
        X=np.concatenate([block.X for block in blocks]),
        C=np.concatenate([block.C for block in blocks]),
        label=np.concatenate([block.label for block in blocks]),
        key=np.concatenate([block.key for block in blocks]),
        record=np.concatenate([block.record for block in blocks]),
        start=start,
    )


def cut(block: Block, low: int, high: int) -> Block:
    part = slice(low, high)
    return Block(
        X=block.X[part],
        C=block.C[part],
        label=block.label[part],
        key=block.key[part],
        record=block.record[part],
        start=block.start + low,
    )


def pick(block: Block, keep: np.ndarray) -> Block:
    return Block(
        X=block.X[keep],
        C=block.C[keep],
        label=block.label[keep],
        key=block.key[keep],
        record=block.record[keep],
        start=block.start,
    )


def canonical(chunks: Iterable[Block], size: int = BLOCK) -> Iterator[Block]:
    """Regroups chunks of any size into blocks of ``size`` rows."""
    held: list[Block] = []
    count = start = 0
    for chunk in chunks:
        while chunk.n:
            part = cut(chunk, 0, min(chunk.n, size - count))
            held.append(part)
            count += part.n
            chunk = cut(chunk, part.n, chunk.n)
            if count == size:
                yield concatenate(held, start)
                start += count
                held, count = [], 0
    if held:
        yield concatenate(held, start)


def fold_blocks(
    blocks: Iterable[Block], step: Callable[[Block], S], merge: Callable[[S, S], S]
) -> S:
    return fold(merge, (step(block) for block in blocks))


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
    ) -> None:
        n = len(X)
        self.schema = schema
        self.whole = Block(
            X=np.ascontiguousarray(X, dtype=np.float64),
            C=np.zeros((n, 0), dtype=np.int32) if C is None else C,
            label=np.full(n, -1, dtype=np.int32) if label is None else label,
            key=row_numbers(n) if key is None else key,
            record=np.arange(n) if record is None else record,
            start=0,
        )

    @property
    def n(self) -> int:
        return self.whole.n

    def blocks(self) -> Iterator[Block]:
        return canonical([self.whole])

    def reduce(self, step: Callable[[Block], S], merge: Callable[[S, S], S]) -> S:
        return fold_blocks(self.blocks(), step, merge)

    def map(self, step: Callable[[Block], Block], schema: Schema) -> ArrayRows:
        whole = concatenate([step(block) for block in self.blocks()], 0)
        return ArrayRows(schema, whole.X, whole.label, whole.key, whole.C, whole.record)


def row_numbers(n: int) -> Keys:
    """Stand-in record keys for tables without any: the position."""
    keys = np.zeros((n, 16), dtype=np.uint8)
    keys[:, :8] = np.arange(n, dtype="<u8").view(np.uint8).reshape(n, 8)
    return keys


def padded_product(X: Floats, A: Floats) -> Floats:
    """``X @ A`` with the same rounding for a record wherever its block ends."""
    if len(X) == BLOCK:
        return X @ A
    full = np.zeros((BLOCK, X.shape[1]))
    full[: len(X)] = X
    product: Floats = (full @ A)[: len(X)]
    return product
