"""Distances of pairs of records before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._comparison import Bools, Compared, Measured
from ppdm_core.metrics._release import check_one_row_each
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.distances import row_slices

PAIRS = 200_000


@dataclass(frozen=True, eq=False)
class Pairs:
    i: Ints
    j: Ints
    before: Floats
    after: Floats

    def measured(self, value: Callable[[Floats, Floats], float]) -> Measured:
        """A function of both distances of all pairs."""

        def on(keep: Bools) -> float:
            both = keep[self.i] & keep[self.j]
            before = self.before[both]
            return value(before, self.after[both]) if before.any() else float("nan")

        return Measured(value(self.before, self.after), on)


def pairs_of(name: str, compared: Compared) -> Pairs:
    """All pairs, or as many random ones as are looked at."""
    check_one_row_each(name, compared)
    table = compared.original
    i, j = table.once("pairs", lambda: chosen(len(table.X), table.rng("pairs")))
    before = table.once("lengths", lambda: lengths(table.X, i, j))
    if not before.any():
        raise NotApplicable(f"{name} needs two records that differ.")
    after = compared.once("lengths", lambda: lengths(compared.Y, i, j))
    return Pairs(i, j, before, after)


def chosen(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    if n * (n - 1) // 2 <= PAIRS:
        i, j = np.triu_indices(n, k=1)
        return i, j
    i = rng.integers(0, n, size=PAIRS)
    j = (i + rng.integers(1, n, size=PAIRS)) % n  # never i itself
    return i, j


def lengths(X: Floats, i: Ints, j: Ints) -> Floats:
    """Euclidean distances of the pairs, a few at a time: no (pairs, d) array."""
    found = np.empty(len(i))
    for part in row_slices(len(i), 64 * X.shape[1]):  # what a processor keeps at hand
        gap = X[i[part]] - X[j[part]]
        found[part] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return found
