"""Facts about a release that are compared with chance."""

from __future__ import annotations

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.model.errors import Defect


class ChanceMetric(ReleaseMetric):
    """A fact about this very release; the baseline is what chance exceeds almost never."""

    kind = "privacy"
    better = "down"
    interval_method = "none"
    on_original = 1.0

    def compare(self, comparison: ReleaseComparison) -> tuple[float, float]:
        """Return the value, and what chance explains."""
        raise Defect(f"{self.name} compares nothing with chance.")

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        value, _ = self._compare_once(comparison)
        return Measurement(value, lambda keep: value)

    def baseline(self, comparison: ReleaseComparison) -> float:
        return self._compare_once(comparison)[1]

    def _compare_once(self, comparison: ReleaseComparison) -> tuple[float, float]:
        return comparison.get_or_compute(self.name, lambda: self.compare(comparison))
