from __future__ import annotations

import numpy as np

from ppdm_core.metrics._columns import MAX_ROWS, find_varying_columns, sample_rows
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.model.arrays import Bools, Floats


class ColumnDistance(ReleaseMetric):
    """Distance between the distributions of a column in the release and in the original.

    The Wasserstein distance of order 1 in units of the range of the original: the mean over
    columns, and the largest one in the notes. Columns that do not vary are left out. Measured on
    at most 10,000 random records and rows. The baseline is a column in which all values are the
    mean.
    """

    name = "column_distance"
    title = "Difference of column distributions"
    describe = "Wasserstein distance of the columns' distributions, by their range"
    template = (
        "The distributions of the columns differ by {value} of their range (Wasserstein distance, "
        "mean over columns); if all values were the mean, {baseline}."
    )
    better = "down"
    bounds = (0.0, float("inf"))
    max_records = MAX_ROWS
    needs_alignment = False
    on_original = 0.0

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

    def baseline(self, comparison: ReleaseComparison) -> float:
        X = comparison.X[:, find_varying_columns(self.name, comparison)]
        return float(np.mean(np.abs(X - X.mean(axis=0)).mean(axis=0) / np.ptp(X, axis=0)))


def wasserstein(x: Floats, y: Floats) -> float:
    """Return the area between the distribution functions of two sorted samples."""
    if not len(x) or not len(y):
        return float("nan")
    if len(x) == len(y):
        return float(np.mean(np.abs(x - y)))
    points = np.sort(np.concatenate([x, y]))
    F, G = (np.searchsorted(z, points[:-1], side="right") / len(z) for z in (x, y))
    return float(np.abs(F - G) @ np.diff(points))
