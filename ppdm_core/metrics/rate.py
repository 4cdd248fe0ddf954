from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import LinkMetric
from ppdm_core.metrics._values import check_links
from ppdm_core.model.arrays import Floats, Ints


class Rate(LinkMetric):
    """Share of targets that were linked to their own released row; -1 is a miss."""

    name = "rate"
    describe = "share of the searched persons whose row was found"
    template = "{story} That finds {value} of them; picking rows at random finds {baseline}."
    is_headline = True

    def each(self, link: Ints, truth: Ints) -> Floats:
        check_links(self.name, link, truth)
        return np.asarray(link == truth, dtype=np.float64)
