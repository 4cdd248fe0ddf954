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
class CorrelationError(OfRelease):
    """Mean absolute change of the correlations between two columns.

    Over all pairs of columns that vary; a released column that does not vary is correlated with
    nothing. The worst pair is in the notes. On at most 10,000 random records and rows. The
    baseline takes all columns for uncorrelated.
    """

    name: ClassVar[str] = "correlation_error"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)
    most: ClassVar[int] = ROWS
    needs_alignment: ClassVar[bool] = False
    describe: ClassVar[str] = "mean absolute change of the correlations between columns"

    def measure(self, compared: Compared) -> Measured:
        columns = varied_columns(self.name, compared, least=2)
        records, rows = sampled(compared)
        before, after = compared.X[records][:, columns], compared.Y[rows][:, columns]

        def changes(keep: Bools) -> Floats:
            kept = keep[records], compared.rows_of(keep)[rows]
            if min(stays.sum() for stays in kept) < 2:
                return np.full(1, np.nan)
            return np.abs(correlations(before[kept[0]]) - correlations(after[kept[1]]))

        found = changes(np.ones(len(compared.X), dtype=np.bool_))
        worst = {"worst_pair": float(found.max())}
        return Measured(float(found.mean()), lambda keep: float(changes(keep).mean()), worst)

    def original(self, compared: Compared) -> float:
        return 0.0

    def baseline(self, compared: Compared) -> float:
        columns = varied_columns(self.name, compared, least=2)
        return float(np.abs(correlations(compared.X[:, columns])).mean())

    def sentence(self, told: Told) -> str:
        return (
            f"Correlations between columns change by {percent(told.value)} on average; for "
            f"somebody who takes all columns for uncorrelated, by {percent(told.baseline)}."
        )


def correlations(X: Floats) -> Floats:
    """Of all pairs of columns."""
    X = X - X.mean(axis=0)
    largest = np.abs(X).max(axis=0)
    X = X / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.einsum("ij,ij->j", X, X))
    X = X / np.where(length > 0, length, 1.0)
    return np.asarray((X.T @ X)[np.triu_indices(X.shape[1], k=1)])
