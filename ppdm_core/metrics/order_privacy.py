from __future__ import annotations

import numpy as np

from ppdm_core.metrics._column_order import OrderedColumns
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric

_GUESSES = 20


class OrderPrivacy(ReleaseMetric):
    """Error of an outsider who guesses the secret order of cosine coefficients, on average.

    The outsider guesses a number of columns, uniform from the number of released ones to twice the
    number of original ones, and the place of each released column among them. The others are taken
    as zero, and the inverse transform follows. The value is the width of the central 95 % of the
    error in units of the column's range, averaged over columns and 20 guesses. The note
    ``known_order`` is the same for one who knows the order: the worst case. One known record
    reveals the order (``column_order``), so no limit may use the average case. Of one party's
    columns in a common release, its own part is measured.

    References: Mukherjee, Chen, Gangopadhyay (2008), average and worst case privacy; the range of
    the guesses is ours.
    """

    name = "order_privacy"
    title = "Error of who guesses the order of columns"
    describe = "width of the 95 % error interval of an outsider who guesses the order of columns"
    template = (
        "The error of an outsider who guesses the order of the columns spans {value} of a "
        "column's range; guessing one value for all records spans {baseline}."
    )
    kind = "privacy"
    better = "up"
    bounds = (0.0, float("inf"))
    interval_method = "none"
    gateable = False
    on_original = 0.0

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        columns = OrderedColumns.from_comparison(self.name, comparison)
        rng = comparison.rng(self.name)
        guesses = [columns.measure(columns.invert_in_guessed_order(rng)) for _ in range(_GUESSES)]
        value = float(np.mean(guesses))
        known = columns.measure(columns.invert_in_true_order())
        return Measurement(value, lambda keep: value, {"known_order": known})

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the value of one constant guess for all records."""
        columns = OrderedColumns.from_comparison(self.name, comparison)
        return columns.measure(np.tile(columns.X.mean(axis=0), (len(columns.X), 1)))
