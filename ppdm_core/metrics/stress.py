from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._pairs import get_pairs
from ppdm_core.model.arrays import Floats


class Stress(ReleaseMetric):
    """Kruskal's stress-1 of the released distances, after fitting their scale to the original.

    sqrt(sum (d - c d')^2 / sum d^2) over pairs, with the factor c that minimises it: 0 if all
    distances are preserved up to one common factor, 1 if all rows are equal. The distances
    themselves are compared, not only their order. If there are more than 200,000 pairs, a random
    sample is measured. The baseline is a release in which all distances are equal.

    References: Kruskal (1964), stress-1; Alotaibi and others (2012), equation 8, with the scale
    that their equations 3 and 4 lack.
    """

    name = "stress"
    title = "Layout error (stress)"
    describe = "error of the distances after the best change of scale (stress-1)"
    template = (
        "After the best change of scale, distances are {value} off (stress); if all distances were "
        "equal, {baseline}."
    )
    better = "down"
    on_original = 0.0

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        return get_pairs(self.name, comparison).measure(stress)

    def baseline(self, comparison: ReleaseComparison) -> float:
        before = get_pairs(self.name, comparison).before
        return stress(before, np.ones_like(before))


def stress(before: Floats, after: Floats) -> float:
    """Return stress-1 of the distances after the best change of scale."""
    longest = float(after.max())
    if longest == 0:
        return 1.0
    after = after / longest  # avoids overflow and underflow of the squares
    scale = float(before @ after) / float(after @ after)
    error = before - scale * after
    return round(min(1.0, float(np.sqrt((error @ error) / (before @ before)))), 12)
