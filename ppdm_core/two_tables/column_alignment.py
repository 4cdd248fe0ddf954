"""Match released columns to original ones by their values or their distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats
from ppdm_core.two_tables.tables import Table

# Above chance: of records spread evenly over the possible values of a column, at most 1/e hold a
# value that no other record has.
MIN_SHARED_VALUE_SHARE = 0.4
MAX_DISTRIBUTION_DISTANCE = 0.05  # in ranges of the original column
MIN_RIVAL_DISTANCE_RATIO = 3.0  # how many times farther the second nearest distribution must be
MAX_COMPARED_ROWS = 2_000  # released rows that are looked up
LEVELS = np.linspace(0.0, 1.0, 201)


def match_by_value(
    original: Table, ours: list[str], released: Table, theirs: list[str], aligned: bool
) -> dict[str, str]:
    """Map original columns to the released ones that hold their values.

    Either most cells are values that one record has, or, where row i is record i, far more of them
    are equal than in unrelated columns.
    """
    from scipy.optimize import linear_sum_assignment

    if not ours or not theirs:
        return {}
    step = -(-released.n // MAX_COMPARED_ROWS)
    share = np.zeros((len(ours), len(theirs)))
    for i, name in enumerate(ours):
        x = original.columns[name]
        unique = find_unique_values(x)
        for j, other in enumerate(theirs):
            y = released.columns[other][::step]
            share[i, j] = np.mean(is_among(y, unique))
            if aligned:
                share[i, j] = max(share[i, j], measure_agreement(x[::step], y))
    pairs = zip(*linear_sum_assignment(share, maximize=True), strict=True)
    return {ours[i]: theirs[j] for i, j in pairs if share[i, j] > MIN_SHARED_VALUE_SHARE}


def find_unique_values(x: NDArray[Any]) -> NDArray[Any]:
    """Return the values that occur once, in ascending order."""
    values, counts = np.unique(x, return_counts=True)
    unique: NDArray[Any] = values[counts == 1]
    return unique


def is_among(y: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the same as ``np.isin``, without sorting the ascending ``values`` again."""
    if not len(values):
        return np.zeros(len(y), dtype=np.bool_)
    place = np.minimum(np.searchsorted(values, y), len(values) - 1)
    return np.asarray(values[place] == y)


def measure_agreement(x: Floats, y: Floats) -> float:
    """Return the share of rows with equal values in excess of chance (Cohen's kappa)."""
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    p, q = (
        np.bincount(part, minlength=len(values)) / len(part) for part in np.split(codes, [len(x)])
    )
    chance = float(p @ q)
    return (float(np.mean(x == y)) - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def match_by_distribution(
    original: Table, ours: list[str], released: Table, theirs: list[str]
) -> dict[str, str]:
    """Map original columns to the released one with the same distribution, if it is unique."""
    if not ours or not theirs:
        return {}
    A = np.quantile(original.numbers(ours), LEVELS, axis=0)
    B = np.quantile(released.numbers(theirs), LEVELS, axis=0)
    unit = np.ptp(A, axis=0)
    # One-dimensional optimal transport: sorted values onto sorted values.
    gap = np.array(
        [np.mean(np.abs(a[:, None] - B), axis=0) / u for a, u in zip(A.T, unit, strict=True)]
    )
    found = {}
    for i, name in enumerate(ours):
        j = int(gap[i].argmin())
        rivals = np.concatenate([np.delete(gap[i], j), np.delete(gap[:, j], i)])
        if gap[i, j] <= MAX_DISTRIBUTION_DISTANCE and np.all(
            rivals > MIN_RIVAL_DISTANCE_RATIO * gap[i, j]
        ):
            found[name] = theirs[j]
    return found
