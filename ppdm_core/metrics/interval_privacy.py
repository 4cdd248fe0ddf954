from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import ReconstructMetric, check_tables
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable


class IntervalPrivacy(ReconstructMetric):
    """Width of the central 95 % of the error, in units of the column's range, averaged.

    Columns with range 0 have no score and are left out. A value above the baseline is not
    protection: the attacker's guess is only bad.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), average privacy; quantiles
    2.5 % and 97.5 %, linear interpolation.
    """

    name = "interval_privacy"
    describe = "width of the 95 % error interval as a share of the column's range"
    template = (
        "{story} The error spans {value} of a column's range; guessing one value for all records "
        "spans {baseline}."
    )
    better = "up"
    bounds = (0.0, float("inf"))

    def measure(self, X: Floats, X_hat: Floats, ranges: Floats, epsilon: float) -> float:
        check_tables(self.name, X, X_hat)
        varied = ranges > 0
        if not varied.any():
            raise NotApplicable(f"{self.name} needs a column that is not constant.")
        low, high = np.quantile(X[:, varied] - X_hat[:, varied], [0.025, 0.975], axis=0)
        return float(np.mean((high - low) / ranges[varied]))
