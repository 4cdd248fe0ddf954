from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._pairs import get_pairs
from ppdm_core.model.arrays import Floats


class DistanceCorrelation(ReleaseMetric):
    """Pearson correlation between the distances of pairs before and after.

    Not the dependence measure of Szekely and others, which has the same name. 1 if distances
    change by a factor and a constant only; 0 if they do not vary in the release. If there are more
    than 200,000 pairs, a random sample is measured.
    """

    name = "distance_correlation"
    utility_name = "distances"
    title = "Distances correlate with the original"
    describe = "correlation of the distances between records before and after"
    template = (
        "Distances between records before and after have a correlation of {value}; distances of "
        "unrelated rows, {baseline}."
    )
    bounds = (-1.0, 1.0)
    on_original = 1.0

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        return get_pairs(self.name, comparison).measure(correlation)

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the value for rows that are unrelated to the records."""
        return 0.0


def correlation(before: Floats, after: Floats) -> float:
    """Return the Pearson correlation, rounded to 12 digits."""
    first, second = (standardize(values) for values in (before, after))
    return round(min(1.0, max(-1.0, float(first @ second))), 12)


def standardize(values: Floats) -> Floats:
    """Return values with mean 0 and length 1; zeros if they do not vary."""
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return np.zeros_like(values)
    values = values - values.mean()
    values /= np.abs(values).max()  # avoids overflow and underflow of the squares
    return np.asarray(values / np.sqrt(values @ values))
