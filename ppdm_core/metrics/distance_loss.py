from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._pairs import get_pairs
from ppdm_core.model.arrays import Floats


class DistanceLoss(ReleaseMetric):
    """Mean over pairs of |d - d'| / d, where d' is the distance in the release.

    Pairs of equal records are divided by the mean distance. No scale is fitted first. If
    there are more than 200,000 pairs, a random sample is measured.

    References: Mukherjee, Chen, Gangopadhyay (2008), distance loss.
    """

    name = "distance_loss"
    title = "Change of distances"
    describe = "mean relative change of the distance between two records"
    template = "The distance between two records changes by {value} on average."
    better = "down"
    bounds = (0.0, float("inf"))
    in_quick_audit = True
    in_summary = True
    on_original = 0.0

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        return get_pairs(self.name, comparison).measure(loss)

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return 1: without a release all records look equal, and every distance is lost."""
        return 1.0


def loss(before: Floats, after: Floats) -> float:
    """Return the mean relative change of the distances."""
    divisor = np.where(before > 0, before, before.mean())
    return float(np.mean(np.abs(before - after) / divisor))
