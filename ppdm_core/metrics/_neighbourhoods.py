"""Nearest neighbours of records in the original and in the release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._release import sample_indices
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.neighbours import NeighbourBatch, find_nearest

NEIGHBOURS = 10
MAX_QUERY_ROWS = 2_000  # rows whose neighbours are searched among all rows


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Classes and preservation of the neighbours of some rows."""

    query_rows: Ints  # rows of the release
    same_class: Floats  # (q,) share of the neighbours with the label of the row
    preserved: Floats | None  # (q,) share that were neighbours before; None: not aligned


def get_neighbourhoods(comparison: ReleaseComparison) -> Neighbourhoods:
    """Return the neighbourhoods of a sample of rows, which both neighbourhood metrics share."""

    def find() -> Neighbourhoods:
        query_rows = sample_indices(len(comparison.Y), MAX_QUERY_ROWS, comparison.rng("asked"))
        return find_neighbourhoods(comparison, query_rows, min(NEIGHBOURS, len(comparison.Y) - 1))

    return comparison.get_or_compute("neighbourhoods", find)


def find_neighbourhoods(comparison: ReleaseComparison, query_rows: Ints, k: int) -> Neighbourhoods:
    """Compare the k nearest neighbours of these rows before and after."""
    label, Y = comparison.row_label, comparison.rows
    same, preserved = np.empty(len(query_rows)), np.empty(len(query_rows))
    is_new = comparison.source is None and comparison.original is not comparison
    before = find_nearest(comparison.X[query_rows], comparison.X, k, query_rows) if is_new else None
    for after in find_nearest(Y[query_rows], Y, k, query_rows):
        is_same = label[after.column] == label[query_rows[after.rows]][after.row]
        same[after.rows] = sum_by_row(after, after.weight * is_same) / k
        if before is not None:
            preserved[after.rows] = count_preserved(next(before), after, len(Y)) / k
    return Neighbourhoods(query_rows, same, preserved if is_new else None)


def count_preserved(before: NeighbourBatch, after: NeighbourBatch, n: int) -> Floats:
    """Return how many of the k places near each row hold a record that was near before.

    A record that was nearer than the k-th counts in full. Those that were as far as the k-th fill
    at most the places that were left for them. So ties in the original cost nothing, and a release
    in which all rows are equal gains nothing.
    """
    old, new = before.row * n + before.column, after.row * n + after.column
    order = np.argsort(old)
    place = order[np.minimum(np.searchsorted(old, new, sorter=order), len(old) - 1)]
    weight = np.where(old[place] == new, after.weight, 0.0)
    was_tied = before.is_tied[place]
    sure, tied = (sum_by_row(after, weight * each) for each in (~was_tied, was_tied))
    return sure + np.minimum(tied, before.open_places)


def sum_by_row(near: NeighbourBatch, values: Floats) -> Floats:
    """Return the sum of values for each row."""
    count = near.rows.stop - near.rows.start
    return np.bincount(near.row, values, minlength=count).astype(np.float64)
