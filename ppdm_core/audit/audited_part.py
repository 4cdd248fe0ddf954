"""The records of a large table that an audit attacks, and the released rows of all others.

An audit works on at most ``MAX_AUDITED_RECORDS`` records, drawn by keyed rank. Their rows are in
memory. The released table is not cut: searches read the rows of all other records in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppdm_core.model.arrays import Bools, Codes, Ints
from ppdm_core.model.attacker import RowBlock
from ppdm_core.model.release import Released
from ppdm_core.model.rows import (
    BLOCK,
    Block,
    Rows,
    encode_positions,
    gather_blocks,
    regroup_blocks,
    select_rows,
)
from ppdm_core.numerics.noise import Noise

MAX_AUDITED_RECORDS = 50_000
SEARCH_BLOCK_ROWS = 4 * BLOCK  # of the released rows that a search compares at a time


def choose_part(rows: Rows, noise: Noise, most: int = MAX_AUDITED_RECORDS) -> Ints | None:
    """Return the ascending numbers of the records that are audited; None: all of them.

    They have the smallest keyed ranks, so that no permutation of the table is held.
    """
    if rows.n <= most:
        return None
    record, rank = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    for block in rows.blocks():
        record = np.append(record, block.record)
        rank = np.append(rank, noise.ranks(encode_positions(block.record), "audited part"))
        if len(record) > most:
            keep = np.argpartition(rank, most - 1)[:most]
            record, rank = record[keep], rank[keep]
    return np.sort(record)


def is_in_part(record: Ints, part: Ints) -> Bools:
    """Return which of the records are in ``part``, which is ascending."""
    place = np.searchsorted(part, record).clip(max=len(part) - 1)
    return np.asarray(part[place] == record)


def gather_part(rows: Rows, part: Ints | None) -> Block:
    """Load the rows of the audited records."""
    if part is None:
        return gather_blocks(rows.blocks(), rows.n)
    chosen = (select_rows(block, is_in_part(block.record, part)) for block in rows.blocks())
    return gather_blocks(chosen, len(part))


@dataclass(frozen=True, eq=False)
class OtherRows:
    """The released rows of records that are not audited, read in blocks."""

    released: Released
    part: Ints  # ascending numbers of the audited records
    columns: tuple[int, ...]  # of the released codes, in the order of the public responses

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the rows, which belong to no person that an attack looks for."""
        chosen = (
            select_rows(block, ~is_in_part(block.record, self.part))
            for block in self.released.rows.blocks()
        )
        for block in regroup_blocks(chosen, SEARCH_BLOCK_ROWS):
            yield RowBlock(block.X, block.label, block.C[:, list(self.columns)])

    @property
    def n(self) -> int:
        return int(self.label_counts[1].sum())

    @cached_property
    def label_counts(self) -> tuple[Codes, Ints]:
        """The labels of these rows, ascending, and how many rows have each."""

        def merge(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
            return {code: a.get(code, 0) + b.get(code, 0) for code in {*a, *b}}

        def step(block: Block) -> dict[int, int]:
            label = block.label[~is_in_part(block.record, self.part)]
            found = np.unique(label, return_counts=True)
            return dict(zip(*(each.tolist() for each in found), strict=True))

        counts = self.released.rows.reduce(step, merge)
        codes = sorted(counts)
        return np.array(codes, dtype=np.int32), np.array([counts[c] for c in codes], dtype=np.int64)
