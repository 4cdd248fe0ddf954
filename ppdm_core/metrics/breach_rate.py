from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import (
    Better,
    Kind,
    ReconstructMetric,
    SentenceValues,
    check_tables,
    percent,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.schema import Schema


@dataclass(frozen=True)
class BreachRate(ReconstructMetric):
    """Share of records that the attacker estimates with a relative error of at most epsilon.

    References: Liu, Giannella, Kargupta (2006), epsilon-privacy breach.
    """

    name: ClassVar[str] = "breach_rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["reconstruct"]] = "reconstruct"
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    uses_claims: ClassVar[bool] = True
    describe: ClassVar[str] = "share of records recovered within epsilon of their length"

    def measure(
        self,
        X: Floats,
        X_hat: Floats,
        schema: Schema,
        epsilon: float,
        ranges: Floats | None = None,
    ) -> float:
        check_tables(self.name, X, X_hat, same_shape=True)
        error = np.linalg.norm(X - X_hat, axis=1)
        return float(np.mean(error <= epsilon * np.linalg.norm(X, axis=1)))

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} That recovers {percent(values.value)} of the records to within "
            f"{100 * values.epsilon:g} %; "
            f"guessing one value for all records recovers {percent(values.baseline)}."
        ).strip()
