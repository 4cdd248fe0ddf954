from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import PairMetric
from ppdm_core.metrics._values import check_links
from ppdm_core.model.arrays import Floats, Ints


class PairRate(PairMetric):
    """Share of persons whose two partial records were linked; -1 is a miss.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), linkability, against a control group.
    """

    name = "pair_rate"
    describe = "share of persons whose two partial records were linked"
    template = (
        "{story} That links both records of {value} of them; for persons who are not in the "
        "release, {baseline}."
    )
    is_headline = True

    def each(self, link: Ints, truth: Ints) -> Floats:
        check_links(self.name, link, truth)
        return np.asarray(link == truth, dtype=np.float64)
