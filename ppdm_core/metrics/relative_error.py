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
class RelativeError(ReconstructMetric):
    """Mean over records of |x - xhat| / |x|; records of length zero are skipped.

    References: Liu, Giannella, Kargupta (2006), error measure of the known-sample attack.
    """

    name: ClassVar[str] = "relative_error"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "up"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    goal: ClassVar[Literal["reconstruct"]] = "reconstruct"
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "mean distance between guess and record, in units of the record"

    def measure(
        self,
        X: Floats,
        X_hat: Floats,
        schema: Schema,
        epsilon: float,
        ranges: Floats | None = None,
    ) -> float:
        check_tables(self.name, X, X_hat, same_shape=True)
        length = np.linalg.norm(X, axis=1)
        used = length > 0
        if not used.any():
            raise NotApplicable(f"{self.name} needs a record that is not zero.")
        error = np.linalg.norm(X[used] - X_hat[used], axis=1)
        return float(np.mean(error / length[used]))

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} The estimates are {percent(values.value)} off; "
            f"guessing one value for all records is {percent(values.baseline)} off."
        ).strip()
