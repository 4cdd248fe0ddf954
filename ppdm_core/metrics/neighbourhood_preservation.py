from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._neighbourhoods import MAX_QUERY_ROWS, NEIGHBOURS, get_neighbourhoods
from ppdm_core.metrics._release import check_one_row_each, measure_mean
from ppdm_core.model.errors import NotApplicable


class NeighbourhoodPreservation(ReleaseMetric):
    """Mean share of the 10 nearest records that are still among the 10 nearest in the release.

    Records that tie for the last places share them: in the release each counts by its part of a
    place, and all records that were as near as the tenth before are equivalent. A record is not
    its own neighbour. If there are more than 2,000 records, the neighbours of a random sample of
    2,000 are searched among all records. The interval comes from leaving out sampled records, not
    neighbours, so that it is too narrow for a limit.

    References: Alotaibi and others (2012), equation 10, whose value drops if records tie.
    """

    name = "neighbourhood_preservation"
    utility_name = "neighbourhoods"
    title = "Ten nearest records stay nearest"
    describe = "share of the 10 nearest records that stay among the 10 nearest"
    template = (
        "Of the ten nearest records, {value} are still among the ten nearest; with random "
        "neighbours, {baseline}."
    )
    max_records = MAX_QUERY_ROWS
    on_original = 1.0
    gateable = False

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_one_row_each(self.name, comparison)
        if len(comparison.X) < 2:
            raise NotApplicable(f"{self.name} needs two records or more.")
        if comparison.original is comparison:
            return measure_mean(np.arange(len(comparison.X)), np.ones(len(comparison.X)))
        found = get_neighbourhoods(comparison)
        assert found.preserved is not None
        return measure_mean(found.query_rows, found.preserved)

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the value for random neighbours."""
        return min(1.0, NEIGHBOURS / max(1, len(comparison.X) - 1))
