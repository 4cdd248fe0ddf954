from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.metrics._neighbourhoods import ASKED, NEIGHBOURS, neighbourhoods
from ppdm_core.metrics._release import OfRelease, check_one_row_each, mean_of
from ppdm_core.model.errors import NotApplicable


@dataclass(frozen=True)
class NeighbourhoodPreservation(OfRelease):
    """Mean share of the 10 nearest records that are still among the 10 nearest in the release.

    Records that tie for the last places share them: in the release each counts by its part of a
    place, and whoever was as near as the tenth before is as good as another. A record is no
    neighbour of itself. Of more than 2,000 records that many random ones are asked about, among
    all. The interval comes from leaving out records that are asked about, not neighbours.

    References: Alotaibi and others (2012), equation 10, whose value drops where records tie.
    """

    name: ClassVar[str] = "neighbourhood_preservation"
    most: ClassVar[int] = ASKED
    describe: ClassVar[str] = "share of the 10 nearest records that stay among the 10 nearest"

    def measure(self, compared: Compared) -> Measured:
        check_one_row_each(self.name, compared)
        if len(compared.X) < 2:
            raise NotApplicable(f"{self.name} needs two records or more.")
        if compared.original is compared:
            return mean_of(np.arange(len(compared.X)), np.ones(len(compared.X)))
        found = neighbourhoods(compared)
        assert found.kept is not None
        return mean_of(found.asked, found.kept)

    def original(self, compared: Compared) -> float:
        return 1.0

    def baseline(self, compared: Compared) -> float:
        """Neighbours by lot."""
        return min(1.0, NEIGHBOURS / max(1, len(compared.X) - 1))

    def sentence(self, told: Told) -> str:
        return (
            f"Of the ten nearest records {percent(told.value)} are still among the ten nearest; "
            f"by lot it would be {percent(told.baseline)}."
        )
