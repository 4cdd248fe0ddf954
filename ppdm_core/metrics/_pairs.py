"""Distances of pairs of records in the original and in the release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._release import check_one_row_each
from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.distances import row_slices

MAX_PAIRS = 200_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs (i, j) of records and their distances before and after."""

    i: Ints
    j: Ints
    before: Floats
    after: Floats

    def measure(self, value: Callable[[Floats, Floats], float]) -> Measurement:
        """Return a function of both distances, over all pairs."""

        def recompute(keep: Bools) -> float:
            both = keep[self.i] & keep[self.j]
            before = self.before[both]
            return value(before, self.after[both]) if before.any() else float("nan")

        return Measurement(value(self.before, self.after), recompute)


def get_pairs(name: str, comparison: ReleaseComparison) -> Pairs:
    """Return all pairs, or a random sample of them."""
    check_one_row_each(name, comparison)
    table = comparison.original
    i, j = table.get_or_compute("pairs", lambda: choose_pairs(len(table.X), table.rng("pairs")))
    before = table.get_or_compute("lengths", lambda: pair_distances(table.X, i, j))
    if not before.any():
        raise NotApplicable(f"{name} needs two records that differ.")
    after = comparison.get_or_compute("lengths", lambda: pair_distances(comparison.Y, i, j))
    return Pairs(i, j, before, after)


def choose_pairs(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the members i and j of all pairs of n records, or of a random sample."""
    if n * (n - 1) // 2 <= MAX_PAIRS:
        i, j = np.triu_indices(n, k=1)
        return i, j
    i = rng.integers(0, n, size=MAX_PAIRS)
    j = (i + rng.integers(1, n, size=MAX_PAIRS)) % n  # never i itself
    return i, j


def pair_distances(X: Floats, i: Ints, j: Ints) -> Floats:
    """Return the Euclidean distances of the pairs, in parts to avoid a (pairs, d) array."""
    found = np.empty(len(i))
    for part in row_slices(len(i), 64 * X.shape[1]):  # fits in the cache
        gap = X[i[part]] - X[j[part]]
        found[part] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return found
