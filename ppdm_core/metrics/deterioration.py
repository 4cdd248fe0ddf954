from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import ChangeMetric, SentenceValues
from ppdm_core.metrics._values import check_finite, percent
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import Defect


class Deterioration(ChangeMetric):
    """Error of a classifier trained on the release, minus that of one trained on the original.

    Both are tested on the same records, so the interval is that of the mean change of a record.
    Below 0 the release is better. The baseline is a recipient who ignores the release and always
    predicts the most common label.

    References: Tan, Ng (2007), phi.
    """

    name = "deterioration"
    describe = "further share of records classified wrongly with the release"
    template = (
        "{story}{value} of the records are classified wrongly after training on the release "
        "instead of the original."
    )
    bounds = (-1.0, 1.0)

    def measure(self, change: Floats) -> float:
        """Return the mean change.

        ``change``: for each record, 1 if only the prediction by the original is right, -1 if only
        that by the release is, else 0; or the mean of these over draws.
        """
        if change.ndim != 1 or not len(change) or bool((np.abs(change) > 1).any()):
            raise Defect(f"{self.name} got changes outside -1 to 1, or none.")
        check_finite(self.name, change)
        return float(np.mean(change))

    def sentence(self, values: SentenceValues) -> str:
        story = f"With {values.story}, " if values.story else ""
        more = "more" if values.value >= 0 else "fewer"
        return self.template.format(story=story, value=f"{percent(abs(values.value))} {more}")
