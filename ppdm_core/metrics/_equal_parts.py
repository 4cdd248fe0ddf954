"""Find single cells whose low-order digits are the place of the original value in its column."""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.model.arrays import Bools, Floats

_MAX_GAP = 1e-4  # up to which a part is the place
_MIN_CELLS = 3
_SHIFTS = range(1, 41)  # rows
_CELLS_PROBABILITY = 1e-10  # of so many equal cells in one column by chance


def find_equal_parts(parts: Floats, places: Floats) -> Bools:
    """Return the rows in which a part equals its place, in columns where that is no chance; (n,).

    Both are in [0, 1]. Chance is what parts give with the places of rows some rows further.
    """
    from scipy.special import pdtrc

    n = len(parts)
    equal = compare_on_circle(parts, places)
    count = equal.sum(axis=0)
    candidates = np.flatnonzero(count >= _MIN_CELLS)
    found = np.zeros(n, dtype=np.bool_)
    for j in candidates.tolist():
        moved = [np.roll(places[:, j], k) for k in _SHIFTS]
        mean = sum(int(compare_on_circle(parts[:, j], each).sum()) for each in moved) / len(moved)
        expected = max(2.0 * _MAX_GAP * n, mean + 3.0 * math.sqrt((mean + 0.2) / len(moved)))
        if pdtrc(count[j] - 1, expected) < _CELLS_PROBABILITY:
            found |= equal[:, j]
    return found


def compare_on_circle(A: Floats, B: Floats) -> Bools:
    """Return which numbers are equal; 0 and 1 are the same."""
    gap = np.abs(A - B)
    return np.asarray((gap <= _MAX_GAP) | (gap >= 1.0 - _MAX_GAP))
