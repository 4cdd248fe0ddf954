from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import (
    Better,
    InferMetric,
    Kind,
    SentenceValues,
    check_tables,
    percent,
)
from ppdm_core.model.arrays import Floats
from ppdm_core.model.schema import Schema


@dataclass(frozen=True)
class InferenceRate(InferMetric):
    """Share of values inferred: numbers to within epsilon of their range, categories exactly.

    What follows from the population is not a breach, so the baseline is the same attack on persons
    who are not in the release.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), inference, against a control group.
    """

    name: ClassVar[str] = "inference_rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["infer"]] = "infer"
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    describe: ClassVar[str] = "share of values of members inferred from their other values"

    def measure(self, guess: Floats, truth: Floats, schema: Schema, epsilon: float) -> float:
        check_tables(self.name, truth, guess, same_shape=True)
        slack = np.concatenate([epsilon * schema.widths, np.zeros(len(schema.categorical))])
        return float(np.mean(np.abs(guess - truth) <= slack))

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} That infers {percent(values.value)} of the values; for persons who "
            f"are not in the release, {percent(values.baseline)}."
        ).strip()
