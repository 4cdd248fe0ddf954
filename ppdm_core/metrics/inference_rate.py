from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import InferMetric
from ppdm_core.metrics._values import check_tables
from ppdm_core.model.arrays import Floats
from ppdm_core.model.schema import Schema


class InferenceRate(InferMetric):
    """Share of values inferred: numbers to within epsilon of their range, categories exactly.

    What follows from the population is not a breach, so the baseline is the same attack on persons
    who are not in the release.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), inference, against a control group.
    """

    name = "inference_rate"
    describe = "share of values of members inferred from their other values"
    template = (
        "{story} That infers {value} of the values; for persons who are not in the release, "
        "{baseline}."
    )
    is_headline = True

    def each(self, guess: Floats, truth: Floats, schema: Schema, epsilon: float) -> Floats:
        check_tables(self.name, truth, guess)
        slack = np.concatenate([epsilon * schema.widths, np.zeros(len(schema.categorical))])
        return np.asarray(np.abs(guess - truth) <= slack, dtype=np.float64)
