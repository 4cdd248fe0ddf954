"""Steps that several attackers of proofs share."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.proofs import View

TINY = 1e-300


def find_nearest(persons: Floats, rows: Floats) -> Ints:
    """Return the nearest row of each person."""
    return np.asarray(cdist(persons, rows).argmin(axis=1))


def link_surely(persons: Floats, rows: Floats) -> tuple[Ints, Floats]:
    """Return the nearest row of each person, sure if no other row is nearly as close."""
    D = cdist(persons, rows)
    nearest = D.argmin(axis=1)
    first, second = np.partition(D, 1, axis=1)[:, :2].T
    return nearest, (second + TINY) / (first + TINY)


def link_values(view: View) -> Ints:
    """Link by distance, in deviations of the columns."""
    unit = view.persons.std(axis=0) + TINY
    return find_nearest(view.persons / unit, view.Y / unit)


def count_equal_cells(persons: Floats, rows: Floats, tolerance: float = 1e-9) -> Ints:
    """Return the number of equal cells of each person and row."""
    scale = tolerance * (np.abs(persons).max(axis=0) + TINY)
    count = np.zeros((len(persons), len(rows)), dtype=np.int64)
    for a, b, step in zip(persons.T, rows.T, scale, strict=True):
        count += np.abs(a[:, None] - b) <= step
    return count


def link_equal_cells(view: View) -> Ints:
    """Link to the row with the most equal cells."""
    return np.asarray(count_equal_cells(view.persons, view.Y).argmax(axis=1))


def place_by_rank(A: Floats) -> Floats:
    """Return the ranks of the values in each column, from 0 to 1."""
    return np.asarray(rankdata(A, axis=0) / len(A))


def link_ranks(view: View) -> Ints:
    """Link by the ranks in each column; all records of the release must be persons."""
    return find_nearest(place_by_rank(view.persons), place_by_rank(view.Y))


def link_in_order(persons: Floats, rows: Floats) -> Ints:
    """Link the person with the k-th smallest value to the row with the k-th smallest value."""
    links = np.empty(len(persons), dtype=np.int64)
    links[np.argsort(persons, kind="stable")] = np.argsort(rows, kind="stable")
    return links


def link_unknown_in_order(view: View, values: Floats, rows: Floats) -> Ints:
    """Link in order, without the rows that are known."""
    free = np.setdiff1d(np.arange(len(rows)), view.rows)
    return np.asarray(free[link_in_order(values, rows[free])])


def link_one_to_one(cost: Floats) -> Ints:
    """Return the assignment of persons to rows with the least total cost."""
    return np.asarray(linear_sum_assignment(cost)[1])


def add_one(A: Floats) -> Floats:
    return np.column_stack([A, np.ones(len(A))])


def learn_linear(inputs: Floats, outputs: Floats, rows: Floats) -> Floats:
    """Return the outputs of an affine map that was fitted to pairs."""
    scale = inputs.std(axis=0) + TINY
    centre = inputs.mean(axis=0)
    A, B = add_one((inputs - centre) / scale), add_one((rows - centre) / scale)
    return np.asarray(B @ np.linalg.lstsq(A, outputs, rcond=1e-12)[0])


def recover_linear(view: View) -> Floats:
    """Recover records by the affine map from rows to records that the known pairs determine."""
    return learn_linear(view.Y[view.rows], view.known, view.Y)


def scale_with(view: View) -> tuple[Floats, Floats]:
    """Return centre and deviation of the columns, as the attacker estimates them."""
    everyone = np.vstack([view.persons, view.known])
    return everyone.mean(axis=0), everyone.std(axis=0) + TINY
