from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Bools, Compared, Measured
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.metrics._neighbourhoods import ASKED, neighbourhoods
from ppdm_core.metrics._release import OfRelease, check_labelled, on_original
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.errors import NotApplicable


@dataclass(frozen=True)
class ClassCompactness(OfRelease):
    """Share of the 10 nearest rows with the row's own class: the mean over classes of their means.

    Every class counts alike, however small; one of fewer than 11 rows cannot reach 1. Rows that
    tie for the last places share them, and a row is no neighbour of itself. Of more than 2,000
    rows that many random ones are asked about, among all; a class without any of them is left
    out. The interval comes from leaving out rows that are asked about, not neighbours.

    References: Alotaibi and others (2012), equations 11 and 12, with the number of classes in
    place of their r.
    """

    name: ClassVar[str] = "class_compactness"
    needs_label: ClassVar[bool] = True
    most: ClassVar[int] = ASKED
    describe: ClassVar[str] = "share of the 10 nearest rows of the same class, mean over classes"

    def measure(self, compared: Compared) -> Measured:
        check_labelled(self.name, compared)
        if len(compared.Y) < 2:
            raise NotApplicable(f"{self.name} needs two rows or more.")
        found = neighbourhoods(compared)
        label = compared.row_label[found.asked]

        def on(keep: Bools) -> float:
            kept = compared.rows_of(keep)[found.asked]
            return mean_of_classes(label[kept], found.same_class[kept])

        return Measured(mean_of_classes(label, found.same_class), on)

    def original(self, compared: Compared) -> float:
        return self.measure(compared.original).value

    def baseline(self, compared: Compared) -> float:
        """Neighbours by lot."""
        sizes = np.bincount(compared.label)
        return float(np.mean((sizes[sizes > 0] - 1) / (len(compared.label) - 1)))

    def sentence(self, told: Told) -> str:
        return (
            f"Of the ten nearest rows {percent(told.value)} are of the same class"
            f"{on_original(told.original)}; by lot it would be {percent(told.baseline)}."
        )


def mean_of_classes(label: Codes, values: Floats) -> float:
    sizes = np.bincount(label)
    is_there = sizes > 0
    if not is_there.any():
        return float("nan")
    return float(np.mean(np.bincount(label, values)[is_there] / sizes[is_there]))
