from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ppdm_core.metrics._metric import ReconstructMetric
from ppdm_core.metrics._values import check_tables
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.intervals import find_quantile_ranks


class IntervalPrivacy(ReconstructMetric):
    """Width of the central 95 % of the error, in units of the column's range, averaged.

    Columns with range 0 have no score and are left out. A value above the baseline is not
    protection: the attacker's guess is only bad.

    The interval comes from the ranks of the errors, for all columns at once. Few errors do not say
    how large the largest ones are: below about 200 records the upper end is what the ranges of the
    columns and of the estimates allow.

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
    interval_method = "own"
    bounds = (0.0, float("inf"))

    def measure(self, X: Floats, X_hat: Floats, ranges: Floats, epsilon: float) -> float:
        check_tables(self.name, X, X_hat)
        varied = ranges > 0
        if not varied.any():
            raise NotApplicable(f"{self.name} needs a column that is not constant.")
        low, high = np.quantile(X[:, varied] - X_hat[:, varied], [0.025, 0.975], axis=0)
        return float(np.mean((high - low) / ranges[varied]))

    def interval(
        self, tables: Sequence[tuple[Floats, Floats]], ranges: Floats, level: float
    ) -> tuple[float, float]:
        """Return the mean of intervals that hold together for all tables and columns."""
        varied = ranges > 0
        tail = (1.0 - level) / 2.0 / (2 * len(tables) * int(varied.sum()))
        ends = []
        for X, X_hat in tables:
            error = np.sort(X[:, varied] - X_hat[:, varied], axis=0)
            near, far = find_quantile_ranks(len(error), 0.975, tail)
            most = ranges[varied] + np.ptp(X_hat[:, varied], axis=0)
            least = error[near - 1] - error[len(error) - near] if near else 0.0 * most
            wide = error[far - 1] - error[len(error) - far] if far <= len(error) else most
            ends.append([np.maximum(least, 0.0), np.maximum(wide, least)])
        low, high = np.mean(np.array(ends) / ranges[varied], axis=(0, 2))
        return float(low), float(high)
