from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.metrics._metric import Better, Told, percent
from ppdm_core.metrics._pairs import pairs_of
from ppdm_core.metrics._release import OfRelease
from ppdm_core.model.arrays import Floats


@dataclass(frozen=True)
class Stress(OfRelease):
    """Kruskal's stress-1 of the released distances, once their scale is that of the original ones.

    sqrt(sum (d - c d')^2 / sum d^2) over pairs, with the factor c that makes it least: 0 when all
    distances are kept but for one common factor, 1 when all rows are equal. The distances
    themselves are compared, not only their order. Above 200,000 pairs a random sample of them is
    measured. The baseline is that of a release in which everybody is equally far from everybody.

    References: Kruskal (1964), stress-1; Alotaibi and others (2012), equation 8, with the scale
    that their equations 3 and 4 lack.
    """

    name: ClassVar[str] = "stress"
    better: ClassVar[Better] = "down"
    describe: ClassVar[str] = "error of the distances after the best change of scale (stress-1)"

    def measure(self, compared: Compared) -> Measured:
        return pairs_of(self.name, compared).measured(stress)

    def original(self, compared: Compared) -> float:
        return 0.0

    def baseline(self, compared: Compared) -> float:
        before = pairs_of(self.name, compared).before
        return stress(before, np.ones_like(before))

    def sentence(self, told: Told) -> str:
        return (
            f"After the best change of scale, distances are {percent(told.value)} off (stress); "
            f"if everybody were equally far from everybody, {percent(told.baseline)}."
        )


def stress(before: Floats, after: Floats) -> float:
    longest = float(after.max())
    if longest == 0:
        return 1.0
    after = after / longest  # squares of tiny or huge distances stay numbers
    scale = float(before @ after) / float(after @ after)
    error = before - scale * after
    return round(min(1.0, float(np.sqrt((error @ error) / (before @ before)))), 12)
