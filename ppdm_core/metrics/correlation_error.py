from __future__ import annotations

import numpy as np

from ppdm_core.metrics._columns import MAX_ROWS, find_varying_columns, sample_rows
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.model.arrays import Bools, Floats


class CorrelationError(ReleaseMetric):
    """Mean absolute change of the correlations between two columns.

    The mean over all pairs of columns that vary; a released column that does not vary has
    correlation 0 with all others. The notes hold the largest change. Measured on at most 10,000
    random records and rows. The baseline assumes that all columns are uncorrelated.
    """

    name = "correlation_error"
    utility_name = "correlation"
    title = "Change of correlations"
    describe = "mean absolute change of the correlations between columns"
    template = (
        "Correlations between columns change by {value} on average; if all columns were assumed "
        "uncorrelated, by {baseline}."
    )
    better = "down"
    bounds = (0.0, 2.0)
    max_records = MAX_ROWS
    needs_alignment = False
    on_original = 0.0

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        columns = find_varying_columns(self.name, comparison, least=2)
        records, rows = sample_rows(comparison)
        before, after = comparison.X[records][:, columns], comparison.Y[rows][:, columns]

        def compute_changes(keep: Bools) -> Floats:
            masks = keep[records], comparison.select_rows(keep)[rows]
            if min(mask.sum() for mask in masks) < 2:
                return np.full(1, np.nan)
            return np.abs(correlations(before[masks[0]]) - correlations(after[masks[1]]))

        found = compute_changes(np.ones(len(comparison.X), dtype=np.bool_))
        worst = {"worst_pair": float(found.max())}
        return Measurement(
            float(found.mean()), lambda keep: float(compute_changes(keep).mean()), worst
        )

    def baseline(self, comparison: ReleaseComparison) -> float:
        columns = find_varying_columns(self.name, comparison, least=2)
        return float(np.abs(correlations(comparison.X[:, columns])).mean())


def correlations(X: Floats) -> Floats:
    """Return the correlations of all pairs of columns."""
    X = X - X.mean(axis=0)
    largest = np.abs(X).max(axis=0)
    X = X / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.einsum("ij,ij->j", X, X))
    X = X / np.where(length > 0, length, 1.0)
    return np.asarray((X.T @ X)[np.triu_indices(X.shape[1], k=1)])
