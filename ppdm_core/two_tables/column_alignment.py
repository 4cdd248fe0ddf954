"""Which released column is which original one, where their names do not say so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats
from ppdm_core.two_tables.tables import Table

# More than chance gives: of people spread evenly over the values that a column may have, at most
# 1/e hold one that is nobody else's.
TOLD = 0.4
NEAR = 0.05  # mean distance between two laws, in ranges of the original column
CLEARLY = 3.0  # how many times farther the second nearest law must be
COMPARED = 2_000  # released rows that are looked up
LEVELS = np.linspace(0.0, 1.0, 201)


def by_value(
    original: Table, ours: list[str], released: Table, theirs: list[str], aligned: bool
) -> dict[str, str]:
    """Original column: the released one that holds its values.

    Either most cells are values that one person has, or, where row i is record i, far more of them
    are equal than in unrelated columns.
    """
    from scipy.optimize import linear_sum_assignment

    if not ours or not theirs:
        return {}
    step = -(-released.n // COMPARED)
    share = np.zeros((len(ours), len(theirs)))
    for i, name in enumerate(ours):
        x = original.columns[name]
        alone = held_by_one(x)
        for j, other in enumerate(theirs):
            y = released.columns[other][::step]
            share[i, j] = np.mean(is_among(y, alone))
            if aligned:
                share[i, j] = max(share[i, j], agreement(x[::step], y))
    pairs = zip(*linear_sum_assignment(share, maximize=True), strict=True)
    return {ours[i]: theirs[j] for i, j in pairs if share[i, j] > TOLD}


def held_by_one(x: NDArray[Any]) -> NDArray[Any]:
    """In ascending order."""
    values, counts = np.unique(x, return_counts=True)
    alone: NDArray[Any] = values[counts == 1]
    return alone


def is_among(y: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """As ``np.isin``, which would sort the ascending ``values`` again for each column."""
    if not len(values):
        return np.zeros(len(y), dtype=np.bool_)
    place = np.minimum(np.searchsorted(values, y), len(values) - 1)
    return np.asarray(values[place] == y)


def agreement(x: Floats, y: Floats) -> float:
    """Share of rows with equal values, beyond what two unrelated columns would have (Cohen)."""
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    p, q = (
        np.bincount(part, minlength=len(values)) / len(part) for part in np.split(codes, [len(x)])
    )
    chance = float(p @ q)
    return (float(np.mean(x == y)) - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def by_law(original: Table, ours: list[str], released: Table, theirs: list[str]) -> dict[str, str]:
    """Original column: the released one that is spread like it, if no other comes near."""
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
        if gap[i, j] <= NEAR and np.all(rivals > CLEARLY * gap[i, j]):
            found[name] = theirs[j]
    return found
