"""What is measured on an attack or a release. One file each, one line here."""

from __future__ import annotations

from ppdm_core.metrics._metric import AttackMetric, Metric, ReleaseMetric, Told, column_mean_guess
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.breach_rate import BreachRate
from ppdm_core.metrics.closest_record import ClosestRecord
from ppdm_core.metrics.dapl_held_out import DaplHeldOut
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.metrics.distance_loss import DistanceLoss
from ppdm_core.metrics.inference_rate import InferenceRate
from ppdm_core.metrics.interval_privacy import IntervalPrivacy
from ppdm_core.metrics.knn_accuracy import KnnAccuracy
from ppdm_core.metrics.norm_breach_rate import NormBreachRate
from ppdm_core.metrics.pair_rate import PairRate
from ppdm_core.metrics.rate import Rate
from ppdm_core.metrics.relative_error import RelativeError
from ppdm_core.metrics.singling_rate import SinglingRate
from ppdm_core.metrics.source_posterior import SourcePosterior
from ppdm_core.metrics.source_rate import SourceRate
from ppdm_core.metrics.true_positive_rate import TruePositiveRate

METRICS: dict[str, Metric] = {
    "interval_privacy": IntervalPrivacy(),
    "relative_error": RelativeError(),
    "breach_rate": BreachRate(),
    "norm_breach_rate": NormBreachRate(),
    "true_positive_rate": TruePositiveRate(),
    "auc": Auc(),
    "rate": Rate(),
    "source_rate": SourceRate(),
    "source_posterior": SourcePosterior(),
    "inference_rate": InferenceRate(),
    "pair_rate": PairRate(),
    "singling_rate": SinglingRate(),
    "knn_accuracy": KnnAccuracy(),
    "distance_loss": DistanceLoss(),
    "closest_record": ClosestRecord(),
    "dapl_held_out": DaplHeldOut(),
    "dapl_plug_in": DaplPlugIn(),
}

__all__ = [
    "METRICS",
    "AttackMetric",
    "Metric",
    "ReleaseMetric",
    "Told",
    "column_mean_guess",
]
