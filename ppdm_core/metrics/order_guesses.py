from __future__ import annotations

from ppdm_core.metrics._column_order import OrderedColumns
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric


class OrderGuesses(ReleaseMetric):
    """Number of guesses of a secret order of cosine coefficients, as a decimal logarithm.

    An outsider who tries every number of columns, from that of the released ones to twice that of
    the original ones, has the sum of i! / (i - K)! orders of K released columns to try. The
    baseline is one guess: one known record reveals the order (``column_order``), so no limit may
    use this number.

    References: Mukherjee, Chen, Gangopadhyay (2008), who take it for the size of the secret.
    """

    name = "order_guesses"
    title = "Orders of columns to guess from"
    describe = "decimal logarithm of the number of possible orders of the columns"
    template = (
        "An outsider without any record has {value} orders of columns to try; with one known "
        "record, {baseline}."
    )
    kind = "privacy"
    better = "up"
    bounds = (0.0, float("inf"))
    interval_method = "none"
    gateable = False
    on_original = 0.0

    def format_value(self, value: float) -> str:
        return f"10^{value:.2f}" if value else "one"

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        value = OrderedColumns.from_comparison(self.name, comparison).count_guesses()
        return Measurement(value, lambda keep: value)

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the value with one known record."""
        return 0.0
