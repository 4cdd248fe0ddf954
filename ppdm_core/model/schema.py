"""Columns of a table: numeric columns with bounds, categorical columns with categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats


@dataclass(frozen=True)
class Numeric:
    """A numeric column and the bounds its values were clamped to."""

    name: str
    low: float
    high: float
    from_data: bool = False  # bounds taken from the private data: a weaker guarantee
    imputed: bool = False  # an empty cell holds the median of the others: a weaker guarantee

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Categorical:
    """A categorical column and its declared categories."""

    name: str
    categories: tuple[str, ...]
    missing: bool = False  # an empty cell is one more category, coded -1

    @property
    def k(self) -> int:
        """Number of different cells that are possible."""
        return len(self.categories) + self.missing


@dataclass(frozen=True)
class Schema:
    """The columns of a table: numeric features, categorical features, label."""

    numeric: tuple[Numeric, ...]
    categorical: tuple[Categorical, ...] = ()
    label: Categorical | None = None
    drops_rows: bool = False  # rows are dropped because of their values: a weaker guarantee

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.numeric)

    @property
    def lows(self) -> Floats:
        return np.array([column.low for column in self.numeric], dtype=np.float64)

    @property
    def highs(self) -> Floats:
        return np.array([column.high for column in self.numeric], dtype=np.float64)

    @property
    def widths(self) -> Floats:
        return self.highs - self.lows

    @property
    def max_norm(self) -> float:
        """The largest possible length of a record."""
        return float(np.linalg.norm(np.maximum(np.abs(self.lows), np.abs(self.highs))))
