"""The records that a release is drawn from, as Parquet parts in the private work folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.model.arrays import Floats, Names
from ppdm_core.model.rows import Block, Rows, select_rows
from ppdm_core.numerics.noise import Noise
from tasks.judge.ledger_charge import name_records
from warehouse.database import Run
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.ledger.drawn_records import DrawnRecords, find_names
from warehouse.parquet_parts import PartRows, write_parts
from warehouse.sanitized_tables import read_validated_blocks
from warehouse.stage_facts import ValidatedFacts
from warehouse.tables import validated_table
from warehouse.transaction import Transaction

if TYPE_CHECKING:
    from warehouse.engines import Engine


def export_records(
    db: Transaction, run: Run, facts: ValidatedFacts, work: Path, engine: Engine | None = None
) -> PartRows:
    """Copy the validated records to Parquet parts: long passes must not hold the warehouse.

    Parts that an earlier process of the same run left are used.
    """
    schema, folder = facts.schema, work / "validated"
    rows = PartRows(schema, folder)
    if not rows.parts():
        shutil.rmtree(folder, ignore_errors=True)
        rows = write_parts(read_validated_blocks(db, validated_table(run), schema), schema, folder)
    if engine is None:
        return rows
    return EngineRows(schema, folder, engine, identify(run.code_version, facts.data, schema))


def select_named(rows: Rows, noise: Noise, names: Names, *, others: bool = False) -> Rows:
    """Return the records with these names, which are sorted, or all others."""
    if not len(names) and others:
        return rows

    def select(block: Block) -> Block:
        return select_rows(block, find_names(name_records(block.key, noise), names) != others)

    return rows.map(select, rows.schema)


def name_all(rows: Rows, noise: Noise) -> Names:
    """Return the names of all records, in their order."""
    return np.concatenate([name_records(block.key, noise) for block in rows.blocks()])


def choose_set_aside(rows: Rows, noise: Noise, share: float, drawn: DrawnRecords) -> Names:
    """Return the names of the records that only the fit uses, sorted.

    They are a random share of all records, by keyed ranks. Records that no release drew come
    first. If there are fewer of them than wanted, they are enough as long as they are more than the
    columns; otherwise records that were drawn are added.
    """
    if not len(drawn.names):  # a short way that holds only the chosen ones in memory
        chosen = [each[ranks < share] for each, ranks in list_ranks(rows, noise)]
        return np.sort(np.concatenate(chosen))
    wanted = free = 0
    for names, ranks in list_ranks(rows, noise):
        wanted += int(np.count_nonzero(ranks < share))
        free += int(np.count_nonzero(~drawn.find(names)))
    if free > min(wanted - 1, len(rows.schema.numeric)):
        wanted = min(wanted, free)
    return np.sort(take_first(rows, noise, drawn, wanted))


def take_first(rows: Rows, noise: Noise, drawn: DrawnRecords, wanted: int) -> Names:
    """Return the names of the records that come first; about as many are in memory."""
    held, held_ranks = np.zeros(0, dtype=np.uint64), np.zeros(0)
    for names, ranks in list_ranks(rows, noise):
        held, held_ranks = np.append(held, names), np.append(held_ranks, ranks)
        if len(held) > 2 * wanted:
            first = np.sort(np.lexsort((held_ranks, drawn.find(held)))[:wanted])
            held, held_ranks = held[first], held_ranks[first]
    return held[np.lexsort((held_ranks, drawn.find(held)))[:wanted]]


def list_ranks(rows: Rows, noise: Noise) -> Iterator[tuple[Names, Floats]]:
    """Yield the names of the records and their ranks, as shares of all ranks."""
    for block in rows.blocks():
        ranks = noise.ranks(block.key, "set aside") / 2.0**64
        yield name_records(block.key, noise), ranks
