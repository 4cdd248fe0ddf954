from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._columns import MAX_ROWS, find_varying_columns, sample_rows
from ppdm_core.metrics._comparison import Bools, Measurement, ReleaseComparison
from ppdm_core.metrics._metric import Better, SentenceValues, percent
from ppdm_core.metrics._release import ReleaseMetricBase
from ppdm_core.model.arrays import Floats


@dataclass(frozen=True)
class ColumnDistance(ReleaseMetricBase):
    """Distance between the distributions of a column in the release and in the original.

    The Wasserstein distance of order 1 in units of the range of the original: the mean over
    columns, and the largest one in the notes. Columns that do not vary are left out. Measured on
    at most 10,000 random records and rows. The baseline is a column in which all values are the
    mean.
    """

    name: ClassVar[str] = "column_distance"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    max_records: ClassVar[int] = MAX_ROWS
    needs_alignment: ClassVar[bool] = False
    describe: ClassVar[str] = "Wasserstein distance of the columns' distributions, by their range"

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        columns = find_varying_columns(self.name, comparison)
        records, rows = sample_rows(comparison)
        before, after = comparison.X[records][:, columns], comparison.Y[rows][:, columns]
        ranges = np.ptp(comparison.X[:, columns], axis=0)
        orders = np.argsort(before, axis=0), np.argsort(after, axis=0)

        def compute_distances(keep: Bools) -> Floats:
            """Return the distance of each column; a subset of sorted values is sorted already."""
            masks = keep[records], comparison.select_rows(keep)[rows]
            found = np.empty(len(columns))
            for j in range(len(columns)):
                x, y = (
                    table[order[:, j][mask[order[:, j]]], j]
                    for table, order, mask in zip((before, after), orders, masks, strict=True)
                )
                found[j] = wasserstein(x, y) / ranges[j]
            return found

        found = compute_distances(np.ones(len(comparison.X), dtype=np.bool_))
        worst = {"worst_column": float(found.max())}
        return Measurement(
            float(found.mean()), lambda keep: float(compute_distances(keep).mean()), worst
        )

    def original(self, comparison: ReleaseComparison) -> float:
        return 0.0

    def baseline(self, comparison: ReleaseComparison) -> float:
        X = comparison.X[:, find_varying_columns(self.name, comparison)]
        return float(np.mean(np.abs(X - X.mean(axis=0)).mean(axis=0) / np.ptp(X, axis=0)))

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"The distributions of the columns differ by {percent(values.value)} of their range "
            "(Wasserstein distance, mean over columns); if all values were the mean, "
            f"{percent(values.baseline)}."
        )


def wasserstein(x: Floats, y: Floats) -> float:
    """Return the area between the distribution functions of two sorted samples."""
    if not len(x) or not len(y):
        return float("nan")
    if len(x) == len(y):
        return float(np.mean(np.abs(x - y)))
    points = np.sort(np.concatenate([x, y]))
    F, G = (np.searchsorted(z, points[:-1], side="right") / len(z) for z in (x, y))
    return float(np.abs(F - G) @ np.diff(points))
