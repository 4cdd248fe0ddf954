"""What the file of a release must hold, and the records that it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.release import Response
from ppdm_core.model.rows import BLOCK


@dataclass(frozen=True, eq=False)
class OriginalRows:
    """The records behind some consecutive released rows."""

    numbers: tuple[Floats, ...]  # (m, d) each: source units, scaled
    codes: Codes  # (m, c) of the categorical columns that are released
    position: Floats  # (m,) in the source

    @property
    def n(self) -> int:
        return len(self.position)

    def slice(self, start: int, stop: int) -> OriginalRows:
        """Return some of the rows."""
        numbers = tuple(X[start:stop] for X in self.numbers)
        return OriginalRows(numbers, self.codes[start:stop], self.position[start:stop])


class Originals(Protocol):
    """The records of a release, wherever they are stored; they are read several times."""

    def blocks(self) -> Iterator[OriginalRows]:
        """Yield the records in the order of the released rows."""

    def others(self) -> Iterator[tuple[int, Floats]]:
        """Yield further private numbers of all records: those of numeric id k, in blocks."""


@dataclass(frozen=True, eq=False)
class ArrayOriginals:
    """Records in memory."""

    rows: OriginalRows
    ids: tuple[Floats, ...] = ()

    def blocks(self) -> Iterator[OriginalRows]:
        for start in range(0, self.rows.n, BLOCK):
            yield self.rows.slice(start, start + BLOCK)

    def others(self) -> Iterator[tuple[int, Floats]]:
        yield from enumerate(self.ids)


def hold_numbers(*numbers: Floats) -> ArrayOriginals:
    """Return records in memory that have numbers only, without a place in the source."""
    n = len(numbers[0])
    return ArrayOriginals(OriginalRows(numbers, np.zeros((n, 0), dtype=np.int32), np.zeros(n)))


@dataclass(frozen=True, eq=False)
class ExpectedContent:
    """What the file of a release must hold, and what it must not."""

    columns: tuple[str, ...]  # the numeric ones
    label: str | None
    categories: tuple[str, ...]
    rows: int
    atom: float  # largest chance of any one value of a released component
    draws: int  # independent components behind a row
    grid: Floats | None  # (s,) step of each released column, if the columns are on a grid
    forbidden: frozenset[str]  # names of identifiers and excluded columns
    originals: Originals
    same_columns: bool
    responses: tuple[Response, ...] = ()  # of the categorical columns that are released

    @property
    def names(self) -> tuple[str, ...]:
        """Every published column."""
        categorical = tuple(each.column.name for each in self.responses)
        return self.columns + categorical + ((self.label,) if self.label else ())
