"""What the ledger says about one record of a dataset."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LedgerBalance:
    """What the releases of a dataset add up to for the most exposed record.

    Figures are ln gamma. Draws are those of methods without a bound, which no sum can hold.
    """

    spent: float  # before this release
    asked: float  # the most that this release adds to a record
    after: float  # with this release; less than the sum if it is not the same record
    records: int  # that this release redraws
    over: int = 0  # records that would be beyond the limit
    draws_spent: int = 0
    draws_after: int = 0
    draws_over: int = 0
    unbounded: tuple[str, ...] = ()  # methods without a bound that no limit waives
    has_ids: bool = True  # else every release redraws all records
