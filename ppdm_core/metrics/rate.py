from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import LinkMetric, check_links
from ppdm_core.model.arrays import Ints


class Rate(LinkMetric):
    """Share of targets that were linked to their own released row; -1 is a miss."""

    name = "rate"
    describe = "share of the searched persons whose row was found"
    template = "{story} That finds {value} of them; picking rows at random finds {baseline}."
    is_rate = True
    is_headline = True

    def measure(self, link: Ints, truth: Ints) -> float:
        check_links(self.name, link, truth)
        return float(np.mean(link == truth))
