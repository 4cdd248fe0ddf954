from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import Better, SentenceValues, percent
from ppdm_core.metrics._pairs import get_pairs
from ppdm_core.metrics._release import ReleaseMetricBase
from ppdm_core.model.arrays import Floats


@dataclass(frozen=True)
class DistanceLoss(ReleaseMetricBase):
    """Mean over pairs of |d - d'| / d, where d' is the distance in the release.

    Pairs of equal records are divided by the mean distance. No scale is fitted first. If
    there are more than 200,000 pairs, a random sample is measured.

    References: Mukherjee, Chen, Gangopadhyay (2008), distance loss.
    """

    name: ClassVar[str] = "distance_loss"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    in_quick_audit: ClassVar[bool] = True
    in_summary: ClassVar[bool] = True
    describe: ClassVar[str] = "mean relative change of the distance between two records"

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        return get_pairs(self.name, comparison).measure(loss)

    def original(self, comparison: ReleaseComparison) -> float:
        return 0.0

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return 1: without a release all records look equal, and every distance is lost."""
        return 1.0

    def sentence(self, values: SentenceValues) -> str:
        return f"The distance between two records changes by {percent(values.value)} on average."


def loss(before: Floats, after: Floats) -> float:
    """Return the mean relative change of the distances."""
    divisor = np.where(before > 0, before, before.mean())
    return float(np.mean(np.abs(before - after) / divisor))
