"""Distance of a kernel density estimate from the true density: shared by the DAPL metrics."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._release import check_comparison
from ppdm_core.model.arrays import Bools, Codes, Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.kernel_model import BandwidthRule, Kernel, is_resampled
from ppdm_core.sanitizers.kde_resample import KdeResample

MAX_CLASS_RECORDS = 2_000


class Dapl(ReleaseMetric):
    """Mean distance over the classes, weighted by their sizes.

    It is an error of the density and not a privacy risk, so no limit may use it.
    """

    kind = "privacy"
    gateable = False
    on_original = 0.0  # the records are drawn from the true density

    @abstractmethod
    def measure_class(
        self, X: Floats, rule: BandwidthRule, widths: Floats, rng: np.random.Generator
    ) -> float:
        """Return the distance for one class; ``widths`` are the ranges of the complete columns."""

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        if not is_resampled(comparison.public):
            raise NotApplicable(
                f"{self.name} needs rows that were drawn by {KdeResample.name}.",
                reason=Reason.METHOD_UNKNOWN,
            )
        check_comparison(self.name, comparison)
        rule = BandwidthRule.from_public(comparison.public)

        def recompute(keep: Bools) -> float:
            X, label = comparison.X[keep], comparison.label[keep]
            return self._average_classes(X, label, rule, comparison.rng(self.name))

        return Measurement(recompute(np.ones(len(comparison.X), dtype=np.bool_)), recompute)

    def _average_classes(
        self, X: Floats, label: Codes, rule: BandwidthRule, rng: np.random.Generator
    ) -> float:
        widths, total = np.ptp(X, axis=0), 0.0
        for code in np.unique(label).tolist():
            records = X[label == code]
            used = records
            if len(records) > MAX_CLASS_RECORDS:
                used = records[rng.choice(len(records), MAX_CLASS_RECORDS, replace=False)]
            total += len(records) * self.measure_class(used, rule, widths, rng)
        return min(1.0, max(0.0, total / len(X)))

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return 1: the distance of rows that are unrelated to the records."""
        return 1.0


class Density:
    """The kernel density estimate of the method, before clipping and rounding."""

    def __init__(self, X: Floats, rule: BandwidthRule, widths: Floats) -> None:
        self.X = X
        d = X.shape[1]
        spread = X.std(axis=0, ddof=1) if len(X) > 1 else np.zeros(d)
        self.h = rule.compute_from_records(spread, len(X), widths)
        limit = np.full(d, 1e9)
        self.kernel = Kernel(self.h, np.zeros(d), np.zeros(d), -limit, limit)

    @property
    def exists(self) -> bool:
        """Whether all columns vary: a constant column has no density."""
        return bool(np.all(self.h > 1e-9))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw rows from the density."""
        steps = np.median(rng.uniform(-1.0, 1.0, (3, count, self.X.shape[1])), axis=0)
        return np.asarray(self.X[rng.integers(0, len(self.X), count)] + self.h * steps)

    def log(self, Y: Floats) -> Floats:
        """Return the log density of rows, minus infinity where no kernel reaches."""
        found = np.full(len(Y), -np.inf)
        for rows, (row, _, likely) in self.kernel.find_pairs(Y, self.X):
            part = np.full(rows.stop - rows.start, -np.inf)
            np.logaddexp.at(part, row, likely)
            found[rows] = part
        return np.asarray(found - np.log(len(self.X)))
