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
class DistanceLoss(OfRelease):
    """Mean over pairs of |d - d'| / d, where d' is the distance in the release.

    Pairs of equal records are divided by the mean distance. No scale is fitted first. Above
    200,000 pairs a random sample of them is measured.

    References: Mukherjee, Chen, Gangopadhyay (2008), distance loss.
    """

    name: ClassVar[str] = "distance_loss"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    in_quick_audit: ClassVar[bool] = True
    in_summary: ClassVar[bool] = True
    describe: ClassVar[str] = "mean relative change of the distance between two records"

    def measure(self, compared: Compared) -> Measured:
        return pairs_of(self.name, compared).measured(loss)

    def original(self, compared: Compared) -> float:
        return 0.0

    def baseline(self, compared: Compared) -> float:
        """Without a release all records look alike: every distance is lost."""
        return 1.0

    def sentence(self, told: Told) -> str:
        return f"The distance between two records changes by {percent(told.value)} on average."


def loss(before: Floats, after: Floats) -> float:
    divisor = np.where(before > 0, before, before.mean())
    return float(np.mean(np.abs(before - after) / divisor))
