from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.distances import row_slices
from ppdm_core.errors import NotApplicable
from ppdm_core.metrics._metric import Better, Kind, Told, check_tables, percent
from ppdm_core.types import Codes, Floats, Ints, Public

_PAIRS = 200_000


@dataclass(frozen=True)
class DistanceLoss:
    """Mean over pairs of |d - d'| / d, where d' is the distance in the release.

    Pairs of equal records are divided by the mean distance. No scale is fitted first. Above
    200,000 pairs a random sample of them is measured.

    References: Mukherjee, Chen, Gangopadhyay (2008), distance loss.
    """

    name: ClassVar[str] = "distance_loss"
    kind: ClassVar[Kind] = "utility"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    goal: ClassVar[Literal["release"]] = "release"
    most: ClassVar[int] = sys.maxsize
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "mean relative change of the distance between two records"

    def measure(
        self,
        X: Floats,
        label: Codes,
        Y: Floats,
        public: Public,
        rng: np.random.Generator,
        source: Ints | None = None,
    ) -> float:
        if source is not None:
            raise NotApplicable(f"{self.name} needs one released row for each record.")
        check_tables(self.name, X, Y, same_shape=False)
        i, j = _pairs(len(X), rng)
        before, after = _lengths(X, i, j), _lengths(Y, i, j)
        mean = before.mean() if len(before) else 0.0
        if mean == 0:
            raise NotApplicable(f"{self.name} needs two records that differ.")
        divisor = np.where(before > 0, before, mean)
        return float(np.mean(np.abs(before - after) / divisor))

    def original(self, X: Floats, label: Codes, rng: np.random.Generator) -> float:
        return 0.0

    def baseline(self, label: Codes) -> float:
        """Without a release all records look alike: every distance is lost."""
        return 1.0

    def sentence(self, told: Told) -> str:
        return f"The distance between two records changes by {percent(told.value)} on average."


def _pairs(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    if n * (n - 1) // 2 <= _PAIRS:
        i, j = np.triu_indices(n, k=1)
        return i, j
    i = rng.integers(0, n, size=_PAIRS)
    j = (i + rng.integers(1, n, size=_PAIRS)) % n  # never i itself
    return i, j


def _lengths(X: Floats, i: Ints, j: Ints) -> Floats:
    """Euclidean distances of the pairs, a few at a time: no (pairs, d) array."""
    found = np.empty(len(i))
    for part in row_slices(len(i), 64 * X.shape[1]):  # what a processor keeps at hand
        gap = X[i[part]] - X[j[part]]
        found[part] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return found
