"""How much an attacker who lacks one column finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnRisk:
    """What an attacker who lacks one column finds."""

    column: str
    rate: float  # share of the persons that are found without the column
    low: float  # interval of how much less that is than with all columns
    high: float


@dataclass(frozen=True)
class ColumnRisks:
    """The share of the persons found with all columns, and without each one."""

    persons: int
    rate: float  # with all columns
    columns: tuple[ColumnRisk, ...]
