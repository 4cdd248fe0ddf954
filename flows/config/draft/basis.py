"""Which principal basis a drafted release can count on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.model.arrays import Floats
from warehouse.column_summary import feature_rows

if TYPE_CHECKING:
    import duckdb

    from warehouse.columns import Column

MOST_COMPONENTS = 2
MOST_ROWS = 20_000
PARTS = 20
TOLERANCE = 1e-6  # far above that of the method
LEAST_VARIANCE = 1e-200


def choose_basis(
    db: duckdb.DuckDBPyConnection, table: str, columns: tuple[Column, ...], record_id: str | None
) -> tuple[str, int]:
    """The basis and a number of components that its fit will not refuse.

    Setting records aside needs a record id, and enough records: if every twentieth of the rows
    varies in so many directions, the fifth that is set aside does so too.
    """
    names = [column.name for column in columns if column.role == "feature"]
    X = scaled(feature_rows(db, table, columns, names, MOST_ROWS))
    if record_id is not None:
        order = np.random.default_rng(0).permutation(len(X))
        common = min(directions(X[order[part::PARTS]]) for part in range(PARTS))
        if common:
            return "sample", min(common, MOST_COMPONENTS)
    return "private", max(1, min(directions(X), MOST_COMPONENTS))


def scaled(X: Floats) -> Floats:
    """To [0, 1] by its extremes, gaps filled with medians, as the release will do it."""
    X = np.where(np.isnan(X).all(axis=0), 0.0, X)
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return np.asarray((X - low) / np.where(width > 0, width, 1.0))


def directions(X: Floats) -> int:
    """How many independent directions the rows vary in."""
    if len(X) < 2:
        return 0
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(X, rowvar=False)))
    largest = variances[-1]
    return int(np.sum(variances > TOLERANCE * largest)) if largest > LEAST_VARIANCE else 0
