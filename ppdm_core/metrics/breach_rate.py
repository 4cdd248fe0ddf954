from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import ReconstructMetric
from ppdm_core.metrics._values import check_tables
from ppdm_core.model.arrays import Floats


class BreachRate(ReconstructMetric):
    """Share of records that the attacker estimates with a relative error of at most epsilon.

    References: Liu, Giannella, Kargupta (2006), epsilon-privacy breach.
    """

    name = "breach_rate"
    describe = "share of records recovered within epsilon of their length"
    template = (
        "{story} That recovers {value} of the records to within {epsilon}; guessing one value for "
        "all records recovers {baseline}."
    )
    is_headline = True
    uses_claims = True

    def each(self, X: Floats, X_hat: Floats, ranges: Floats, epsilon: float) -> Floats:
        check_tables(self.name, X, X_hat)
        error = np.linalg.norm(X - X_hat, axis=1)
        is_near = error <= epsilon * np.linalg.norm(X, axis=1)
        return np.asarray(is_near, dtype=np.float64)
