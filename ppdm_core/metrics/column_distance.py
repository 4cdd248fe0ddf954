from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._columns import ROWS, sampled, varied_columns
from ppdm_core.metrics._comparison import Bools, Compared, Measured
from ppdm_core.metrics._metric import Better, Told, percent
from ppdm_core.metrics._release import OfRelease
from ppdm_core.model.arrays import Floats


@dataclass(frozen=True)
class ColumnDistance(OfRelease):
    """How far values must move for a released column to be spread as the original one.

    The Wasserstein distance of order 1 between the two distributions of a column, in units of the
    range of the original: the mean over columns, and the worst one in the notes. Columns that do
    not vary are left out. On at most 10,000 random records and rows. The baseline is a column in
    which everybody has the mean.
    """

    name: ClassVar[str] = "column_distance"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    most: ClassVar[int] = ROWS
    needs_alignment: ClassVar[bool] = False
    describe: ClassVar[str] = "distance of the columns' distributions (Wasserstein, of the range)"

    def measure(self, compared: Compared) -> Measured:
        columns = varied_columns(self.name, compared)
        records, rows = sampled(compared)
        before, after = compared.X[records][:, columns], compared.Y[rows][:, columns]
        ranges = np.ptp(compared.X[:, columns], axis=0)
        orders = np.argsort(before, axis=0), np.argsort(after, axis=0)

        def each(keep: Bools) -> Floats:
            """Sorted once: what is left without some records is sorted, too."""
            kept = keep[records], compared.rows_of(keep)[rows]
            found = np.empty(len(columns))
            for j in range(len(columns)):
                x, y = (
                    table[order[:, j][stays[order[:, j]]], j]
                    for table, order, stays in zip((before, after), orders, kept, strict=True)
                )
                found[j] = wasserstein(x, y) / ranges[j]
            return found

        found = each(np.ones(len(compared.X), dtype=np.bool_))
        worst = {"worst_column": float(found.max())}
        return Measured(float(found.mean()), lambda keep: float(each(keep).mean()), worst)

    def original(self, compared: Compared) -> float:
        return 0.0

    def baseline(self, compared: Compared) -> float:
        X = compared.X[:, varied_columns(self.name, compared)]
        return float(np.mean(np.abs(X - X.mean(axis=0)).mean(axis=0) / np.ptp(X, axis=0)))

    def sentence(self, told: Told) -> str:
        return (
            f"Columns are spread otherwise by {percent(told.value)} of their range (Wasserstein "
            f"distance, mean over columns); if everybody had the mean, {percent(told.baseline)}."
        )


def wasserstein(x: Floats, y: Floats) -> float:
    """Of two sorted samples: the area between their distribution functions."""
    if not len(x) or not len(y):
        return float("nan")
    if len(x) == len(y):
        return float(np.mean(np.abs(x - y)))
    points = np.sort(np.concatenate([x, y]))
    F, G = (np.searchsorted(z, points[:-1], side="right") / len(z) for z in (x, y))
    return float(np.abs(F - G) @ np.diff(points))
