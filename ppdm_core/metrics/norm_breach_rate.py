from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import NormMetric
from ppdm_core.metrics._values import check_tables
from ppdm_core.model.arrays import Floats


class NormBreachRate(NormMetric):
    """Share of records whose Euclidean length the attacker estimates to within epsilon.

    References: Tan, Ng (2007), lemmas 4.1 and 4.2, which bound such lengths.
    """

    name = "norm_breach_rate"
    describe = "share of records whose length is known to within epsilon"
    template = (
        "{story} That gives the length of {value} of the records to within {epsilon}; guessing one "
        "length for all records gives {baseline}."
    )
    is_headline = True

    def each(self, length: Floats, length_hat: Floats, epsilon: float) -> Floats:
        check_tables(self.name, length, length_hat)
        return np.asarray(np.abs(length - length_hat) <= epsilon * length, dtype=np.float64)
