"""Features of rows that a map may keep: columns, ranks, sums, lengths, distances from others."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.neighbours import find_nearest_rows

_MIN_RELATIVE_SPREAD = 1e-12
_MIN_RELATIVE_SIZE = 1e-6
_MAX_PAIRED_COLUMNS = 10
_MAX_ORDERED_COLUMNS = 7  # whose order is one number
_NEIGHBOURS = 5
_MAX_REFERENCE_ROWS = 2_000  # among which neighbours are searched
Features = dict[str, Floats]


def compute_features(A: Floats, raw: Floats, reference: Floats) -> Features:
    """Return the features of the rows ``A``, family by family.

    ``raw`` are the same rows in original units. ``reference`` are rows of the same table, which
    give the location and scale of each column and its ranks.
    """
    Z = standardise(A, reference)
    return {
        "columns": Z,
        "ranks": rank_within(A, reference),
        "sorted": np.sort(raw, axis=1),
        "sorted columns": np.sort(Z, axis=1),
        "invariants": standardise_self(
            np.column_stack(
                [*list_invariants(raw), *list_invariants(Z), np.sort(np.abs(Z), axis=1)]
            )
        ),
        "lengths of pairs": measure_pairs(Z),
        "figures": standardise_self(compute_figures(Z)),
        "neighbours": measure_neighbours(Z, standardise(reference, reference)),
    }


def compute_logarithms(raw: Floats, reference: Floats) -> Floats:
    """Return logarithms of the sizes of values in original units; (n, d).

    A direction in them is a ratio or a product of powers of columns. Zero becomes a small size.
    """
    size = np.sqrt((reference**2).mean(axis=0))
    return np.asarray(np.log(np.abs(raw) / np.where(size > 0, size, 1.0) + _MIN_RELATIVE_SIZE))


def append_squares(Z: Floats) -> Floats:
    """Return the columns and their squares; (n, 2 d).

    A direction in them is a sum of squared distances from some values, in some columns.
    """
    return np.column_stack([Z, Z**2])


def append_products(Z: Floats) -> Floats:
    """Return the columns, their squares and their products; a direction is a quadratic form."""
    left, right = np.triu_indices(Z.shape[1])
    return np.column_stack([Z, Z[:, left] * Z[:, right]])


def to_original_units(A: Floats, offset: Floats | None, unit: Floats | None) -> Floats:
    """Return rows in the units of the original table, if they are known."""
    if offset is None or unit is None or A.shape[1] != len(unit):
        return A
    return A * unit + offset


def list_invariant_forms(A: Floats, reference: Floats) -> Features:
    """Return the rows in forms that do not change with signs, places or a common factor."""
    Z = standardise(A, reference)
    length = np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return {"absolute": np.abs(Z), "rearranged": np.sort(Z, axis=1), "direction": Z / length}


def describe_rearranged(A: Floats) -> Floats:
    """Return what does not change when the values of a row are rearranged."""
    return np.column_stack([np.sort(A, axis=1), *list_invariants(A)])


def standardise(A: Floats, reference: Floats) -> Floats:
    """Return columns with the mean 0 and deviation 1 of ``reference``; constant ones become 0."""
    centre, spread = reference.mean(axis=0), reference.std(axis=0)
    is_constant = spread <= _MIN_RELATIVE_SPREAD * np.maximum(np.abs(centre), 1e-300)
    return np.asarray(np.where(is_constant, 0.0, A - centre) / np.where(is_constant, 1.0, spread))


def standardise_self(A: Floats) -> Floats:
    """Return columns with mean 0 and deviation 1."""
    return standardise(A, A)


def rank_within(A: Floats, reference: Floats) -> Floats:
    """Return the share of ``reference`` below each value, minus one half; ties count half."""
    found = np.empty(A.shape)
    for j, column in enumerate(np.sort(reference, axis=0).T):
        below = np.searchsorted(column, A[:, j], side="left")
        found[:, j] = below + np.searchsorted(column, A[:, j], side="right")
    return found / (2.0 * len(reference)) - 0.5


def measure_pairs(Z: Floats) -> Floats:
    """Return the length of each pair of columns; of adjacent columns only, if there are many."""
    d = Z.shape[1]
    if d < 2:
        return np.abs(Z)
    left, right = np.triu_indices(d, 1)
    if d > _MAX_PAIRED_COLUMNS:
        left, right = np.arange(d), np.roll(np.arange(d), -1)
    return np.hypot(Z[:, left], Z[:, right])


def measure_neighbours(Z: Floats, others: Floats) -> Floats:
    """Return how isolated each row is: logarithms of its distances from the nearest ``others``.

    A row at distance 0 counts as the row itself. Of many others, some are taken.
    """
    others = others[:: -(-len(others) // _MAX_REFERENCE_ROWS)]
    square = find_nearest_rows(Z, others, _NEIGHBOURS + 1)[1]
    square = np.where(square[:, :1] == 0, square[:, 1:], square[:, :-1])
    return standardise_self(np.log(square + _MIN_RELATIVE_SPREAD))


def compute_figures(Z: Floats) -> Floats:
    """Return figures of each row that may stand for one hidden number; (n, f).

    Figures of the complete row: sum, length, extremes, median, spread, product, the place of the
    largest value and the order of the first values. Figures of adjacent columns: difference,
    product and angle.
    """
    size = np.log(np.abs(Z) + np.finfo(np.float64).tiny)
    order = np.argsort(np.argsort(Z[:, :_MAX_ORDERED_COLUMNS], axis=1), axis=1)
    left, right = Z[:, :-1], Z[:, 1:]
    return np.column_stack(
        [
            *list_invariants(Z),
            np.ptp(Z, axis=1),
            np.median(Z, axis=1),
            size.sum(axis=1),
            Z.argmax(axis=1),
            Z.argmin(axis=1),
            order @ float(_MAX_ORDERED_COLUMNS) ** -np.arange(order.shape[1]),
            right - left,
            left * right,
            np.arctan2(right, left),
        ]
    )


def list_invariants(A: Floats) -> list[Floats]:
    """Return figures of each row that do not change when its values are rearranged."""
    return [
        A.sum(axis=1),
        np.linalg.norm(A, axis=1),
        np.abs(A).sum(axis=1),
        A.min(axis=1),
        A.max(axis=1),
        A.std(axis=1),
    ]
