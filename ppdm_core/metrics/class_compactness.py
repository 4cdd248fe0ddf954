from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._neighbourhoods import MAX_QUERY_ROWS, get_neighbourhoods
from ppdm_core.metrics._release import check_labels
from ppdm_core.model.arrays import Bools, Codes, Floats
from ppdm_core.model.errors import NotApplicable


class ClassCompactness(ReleaseMetric):
    """Share of the 10 nearest rows with the class of the row: the mean over the class means.

    Every class has the same weight, whatever its size; a class of fewer than 11 rows cannot reach
    1. Rows that tie for the last places share them, and a row is not its own neighbour. If there
    are more than 2,000 rows, the neighbours of a random sample of 2,000 are searched among all
    rows; a class without any sampled row is left out. The interval comes from leaving out sampled
    rows, not neighbours, so that it is too narrow for a limit.

    References: Alotaibi and others (2012), equations 11 and 12, with the number of classes in
    place of their r.
    """

    name = "class_compactness"
    title = "Ten nearest rows have the same class"
    describe = "share of the 10 nearest rows of the same class, mean over classes"
    template = (
        "Of the ten nearest rows, {value} have the same class{original}; with random neighbours, "
        "{baseline}."
    )
    needs_label = True
    gateable = False
    max_records = MAX_QUERY_ROWS

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_labels(self.name, comparison)
        if len(comparison.Y) < 2:
            raise NotApplicable(f"{self.name} needs two rows or more.")
        found = get_neighbourhoods(comparison)
        label = comparison.row_label[found.query_rows]

        def recompute(keep: Bools) -> float:
            mask = comparison.select_rows(keep)[found.query_rows]
            return average_classes(label[mask], found.same_class[mask])

        return Measurement(average_classes(label, found.same_class), recompute)

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the value for random neighbours."""
        sizes = np.bincount(comparison.label)
        return float(np.mean((sizes[sizes > 0] - 1) / (len(comparison.label) - 1)))


def average_classes(label: Codes, values: Floats) -> float:
    """Return the mean over the classes of their mean values; NaN without any record."""
    sizes = np.bincount(label)
    is_there = sizes > 0
    if not is_there.any():
        return float("nan")
    return float(np.mean(np.bincount(label, values)[is_there] / sizes[is_there]))
