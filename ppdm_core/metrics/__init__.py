"""What is measured on an attack or a release. One file each, one line here."""

from __future__ import annotations

from ppdm_core.metrics._metric import (
    LinkMetric,
    Metric,
    ReconstructMetric,
    ReleaseMetric,
    column_mean_guess,
)
from ppdm_core.metrics.breach_rate import BreachRate
from ppdm_core.metrics.distance_loss import DistanceLoss
from ppdm_core.metrics.interval_privacy import IntervalPrivacy
from ppdm_core.metrics.knn_accuracy import KnnAccuracy
from ppdm_core.metrics.rate import Rate
from ppdm_core.metrics.relative_error import RelativeError

METRICS: dict[str, Metric] = {
    "interval_privacy": IntervalPrivacy(),
    "relative_error": RelativeError(),
    "breach_rate": BreachRate(),
    "rate": Rate(),
    "knn_accuracy": KnnAccuracy(),
    "distance_loss": DistanceLoss(),
}

__all__ = [
    "METRICS",
    "LinkMetric",
    "Metric",
    "ReconstructMetric",
    "ReleaseMetric",
    "column_mean_guess",
]
