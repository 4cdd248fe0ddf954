from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import Better, ChangeMetric, Kind, Told, check_finite, percent
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import Defect


@dataclass(frozen=True)
class Deterioration(ChangeMetric):
    """Error of a classifier that learned from the release, minus that of one from the original.

    Both are asked about the same records, so that the interval comes from the paired standard
    error over records; two made-up ones, one for each side, keep it honest where no answer
    differs. Below 0 the release serves better. The baseline is somebody who ignores the release
    and always answers the commonest label.

    References: Tan, Ng (2007), phi; Bonett, Price (2012), the made-up records.
    """

    name: ClassVar[str] = "deterioration"
    kind: ClassVar[Kind] = "utility"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    goal: ClassVar[Literal["change"]] = "change"
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "share of records classified wrongly beyond those of the original"

    def measure(self, change: Floats) -> float:
        """``change``: of each record, 1 if only the original's answer is right, -1 if only the
        release's is, else 0; or a mean of these over draws."""
        if change.ndim != 1 or not len(change) or bool((np.abs(change) > 1).any()):
            raise Defect(f"{self.name} got no changes between -1 and 1.")
        check_finite(self.name, change)
        return float(np.mean(change))

    def sentence(self, told: Told) -> str:
        more = "more" if told.value >= 0 else "fewer"
        return (
            (f"With {told.story}, " if told.story else "")
            + f"{percent(abs(told.value))} {more} of the records are classified wrongly when the "
            "release is learned from in place of the original."
        )
