from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.metrics._pairs import pairs_of
from ppdm_core.metrics._release import OfRelease
from ppdm_core.model.arrays import Floats


@dataclass(frozen=True)
class DistanceCorrelation(OfRelease):
    """Pearson's correlation between the distances of pairs before and after.

    Not the dependence measure of Szekely and others, which has the same name. 1 when distances
    change by a factor and a constant only; 0 where they do not vary in the release. Above 200,000
    pairs a random sample of them is measured.
    """

    name: ClassVar[str] = "distance_correlation"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    describe: ClassVar[str] = "correlation of the distances between records before and after"

    def measure(self, compared: Compared) -> Measured:
        return pairs_of(self.name, compared).measured(correlation)

    def original(self, compared: Compared) -> float:
        return 1.0

    def baseline(self, compared: Compared) -> float:
        """Rows that have nothing to do with the records."""
        return 0.0

    def sentence(self, told: Told) -> str:
        return (
            f"Distances between records before and after have a correlation of "
            f"{percent(told.value)}; distances of unrelated rows, {percent(told.baseline)}."
        )


def correlation(before: Floats, after: Floats) -> float:
    first, second = (centred(values) for values in (before, after))
    return round(min(1.0, max(-1.0, float(first @ second))), 12)


def centred(values: Floats) -> Floats:
    """With mean 0 and length 1; all 0 where they do not vary."""
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return np.zeros_like(values)
    values = values - values.mean()
    values /= np.abs(values).max()  # squares of tiny or huge distances stay numbers
    return np.asarray(values / np.sqrt(values @ values))
