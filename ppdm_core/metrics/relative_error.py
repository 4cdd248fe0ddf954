from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import ReconstructMetric
from ppdm_core.metrics._values import check_tables
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable


class RelativeError(ReconstructMetric):
    """Mean over records of |x - xhat| / |x|; records of length zero are skipped.

    References: Liu, Giannella, Kargupta (2006), error measure of the known-sample attack.
    """

    name = "relative_error"
    describe = "mean distance between guess and record, in units of the record"
    template = (
        "{story} The estimates are {value} off; guessing one value for all records is {baseline} "
        "off."
    )
    better = "up"
    bounds = (0.0, float("inf"))

    def each(self, X: Floats, X_hat: Floats, ranges: Floats, epsilon: float) -> Floats:
        check_tables(self.name, X, X_hat)
        length = np.linalg.norm(X, axis=1)
        used = length > 0
        if not used.any():
            raise NotApplicable(f"{self.name} needs a record that is not zero.")
        found = np.full(len(X), np.nan)
        found[used] = np.linalg.norm(X[used] - X_hat[used], axis=1) / length[used]
        return found

    def bound_values(self, values: Floats) -> tuple[float, float]:
        """Return 0, and twice the largest error; that of guessing zero is 1."""
        return 0.0, 2.0 * max(1.0, float(values.max()))
