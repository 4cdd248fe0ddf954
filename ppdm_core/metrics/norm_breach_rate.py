from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import (
    Better,
    Kind,
    NormMetric,
    SentenceValues,
    check_tables,
    percent,
)
from ppdm_core.model.arrays import Floats


@dataclass(frozen=True)
class NormBreachRate(NormMetric):
    """Share of records whose Euclidean length the attacker estimates to within epsilon.

    References: Tan, Ng (2007), lemmas 4.1 and 4.2, which bound such lengths.
    """

    name: ClassVar[str] = "norm_breach_rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["norms"]] = "norms"
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    describe: ClassVar[str] = "share of records whose length is known to within epsilon"

    def measure(self, length: Floats, length_hat: Floats, epsilon: float) -> float:
        check_tables(self.name, length, length_hat, same_shape=True)
        return float(np.mean(np.abs(length - length_hat) <= epsilon * length))

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} That gives the length of {percent(values.value)} of the records to "
            f"within {100 * values.epsilon:g} %; guessing one length for all records gives "
            f"{percent(values.baseline)}."
        ).strip()
