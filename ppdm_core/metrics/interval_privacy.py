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
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.schema import Schema


@dataclass(frozen=True)
class IntervalPrivacy(ReconstructMetric):
    """Width of the central 95 % of the error, in units of the column's range, averaged.

    Columns with range 0 have no score and are left out. A value above the baseline is not
    protection: the attacker's guess is only bad.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), average privacy; quantiles
    2.5 % and 97.5 %, linear interpolation.
    """

    name: ClassVar[str] = "interval_privacy"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "up"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    goal: ClassVar[Literal["reconstruct"]] = "reconstruct"
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "width of the 95 % error interval as a share of the column's range"

    def measure(
        self,
        X: Floats,
        X_hat: Floats,
        schema: Schema,
        epsilon: float,
        ranges: Floats | None = None,
    ) -> float:
        check_tables(self.name, X, X_hat, same_shape=True)
        width = np.ptp(X, axis=0) if ranges is None else ranges
        varied = width > 0
        if not varied.any():
            raise NotApplicable(f"{self.name} needs a column that is not constant.")
        low, high = np.quantile(X[:, varied] - X_hat[:, varied], [0.025, 0.975], axis=0)
        return float(np.mean((high - low) / width[varied]))

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} The error spans {percent(values.value)} of a column's range; "
            f"guessing one value for all records spans {percent(values.baseline)}."
        ).strip()
