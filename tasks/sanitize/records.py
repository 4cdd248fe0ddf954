"""The records that a release is drawn from, as Parquet parts in the private work folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import Block, select_rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from warehouse.database import Run
from warehouse.parquet_parts import PartRows, write_parts
from warehouse.sanitized_tables import read_validated_blocks
from warehouse.transaction import Transaction


@dataclass(frozen=True)
class SplitRecords:
    """The records that are released, and those that only the fit uses."""

    released: PartRows
    aside: PartRows | None  # None: the fit uses the released ones


def export_records(db: Transaction, run: Run, schema: Schema, work: Path) -> PartRows:
    """Copy the validated records to Parquet parts: long passes must not hold the warehouse."""
    return write_parts(read_validated_blocks(db, run, schema), schema, work / "validated")


def select_released(rows: PartRows, noise: Noise, share: float) -> PartRows:
    """Return the records that are not set aside, where ``share`` of them is."""
    return select_by_rank(rows, noise, share, 2.0) if share else rows


def split_records(rows: PartRows, noise: Noise, share: float, reserved: float) -> SplitRecords:
    """Split off the records that the fit uses: the same ones in every release.

    Records that an earlier release set aside (``reserved``) are in no release of any method.
    """
    released = select_released(rows, noise, max(share, reserved))
    aside = select_by_rank(rows, noise, 0.0, share) if share else None
    if released.n < 2 or (aside is not None and aside.n < 2):
        fitting = aside.n if aside is not None else 0
        raise BadInput(
            f"Setting records aside leaves {fitting} to fit on and {released.n} to release.",
            remedy="Release more records, or change 'basis_share'.",
        )
    return SplitRecords(released, aside)


def select_by_rank(rows: PartRows, noise: Noise, low: float, high: float) -> PartRows:
    """Return the records whose keyed rank, as a share of all ranks, is in [low, high)."""

    def select(block: Block) -> Block:
        rank = noise.ranks(block.key, "set aside") / 2.0**64
        return select_rows(block, (low <= rank) & (rank < high))

    return rows.map(select, rows.schema)
