"""Choose the principal basis of a drafted release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.model.arrays import Floats
from warehouse.column_summary import read_feature_rows

if TYPE_CHECKING:
    import duckdb

    from warehouse.columns import Column

MAX_COMPONENTS = 2
MAX_ROWS = 20_000
PARTS = 20
MIN_VARIANCE_RATIO = 1e-6  # to the largest; far above the tolerance of the method
MIN_VARIANCE = 1e-200


def choose_basis(
    db: duckdb.DuckDBPyConnection, table: str, columns: tuple[Column, ...], record_id: str | None
) -> tuple[str, int]:
    """Return the basis and a number of components that its fit will accept.

    Setting records aside needs a record id, and enough records: if every twentieth of the rows
    varies in so many directions, the fifth that is set aside does so too.
    """
    names = [column.name for column in columns if column.type == "numeric"]
    X = scale_columns(read_feature_rows(db, table, columns, names, MAX_ROWS))
    if record_id is not None:
        order = np.random.default_rng(0).permutation(len(X))
        common = min(count_directions(X[order[part::PARTS]]) for part in range(PARTS))
        if common:
            return "sample", min(common, MAX_COMPONENTS)
    return "private", max(1, min(count_directions(X), MAX_COMPONENTS))


def scale_columns(X: Floats) -> Floats:
    """Return columns scaled to [0, 1], with medians for missing values, as a release has them."""
    X = np.where(np.isnan(X).all(axis=0), 0.0, X)
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return np.asarray((X - low) / np.where(width > 0, width, 1.0))


def count_directions(X: Floats) -> int:
    """Return the number of independent directions in which the rows vary."""
    if len(X) < 2:
        return 0
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(X, rowvar=False)))
    largest = variances[-1]
    return int(np.sum(variances > MIN_VARIANCE_RATIO * largest)) if largest > MIN_VARIANCE else 0
