"""Metrics of an attack or of a release. One file each, one line here."""

from __future__ import annotations

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import (
    AttackMetric,
    InferMetric,
    LinkMetric,
    MemberMetric,
    Metric,
    NormMetric,
    PairMetric,
    ReconstructMetric,
    ReleaseMetric,
    SentenceValues,
    SingleOutMetric,
    SourceMetric,
)
from ppdm_core.metrics.adjusted_rand import AdjustedRand
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.best_accuracy import BestAccuracy
from ppdm_core.metrics.breach_rate import BreachRate
from ppdm_core.metrics.class_compactness import ClassCompactness
from ppdm_core.metrics.closest_record import ClosestRecord
from ppdm_core.metrics.cluster_f_measure import ClusterFMeasure
from ppdm_core.metrics.column_distance import ColumnDistance
from ppdm_core.metrics.copied_records import CopiedRecords
from ppdm_core.metrics.correlation_error import CorrelationError
from ppdm_core.metrics.dapl_held_out import DaplHeldOut
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.metrics.deterioration import Deterioration
from ppdm_core.metrics.distance_correlation import DistanceCorrelation
from ppdm_core.metrics.distance_loss import DistanceLoss
from ppdm_core.metrics.frequency_error import FrequencyError
from ppdm_core.metrics.hidden_digits import HiddenDigits
from ppdm_core.metrics.inference_rate import InferenceRate
from ppdm_core.metrics.interval_privacy import IntervalPrivacy
from ppdm_core.metrics.knn_accuracy import KnnAccuracy
from ppdm_core.metrics.naive_bayes_accuracy import NaiveBayesAccuracy
from ppdm_core.metrics.neighbourhood_preservation import NeighbourhoodPreservation
from ppdm_core.metrics.neural_network_accuracy import NeuralNetworkAccuracy
from ppdm_core.metrics.norm_breach_rate import NormBreachRate
from ppdm_core.metrics.order_guesses import OrderGuesses
from ppdm_core.metrics.order_privacy import OrderPrivacy
from ppdm_core.metrics.pair_rate import PairRate
from ppdm_core.metrics.predictable_noise import PredictableNoise
from ppdm_core.metrics.radius_knn_accuracy import RadiusKnnAccuracy
from ppdm_core.metrics.rate import Rate
from ppdm_core.metrics.recomputed_noise import RecomputedNoise
from ppdm_core.metrics.relative_error import RelativeError
from ppdm_core.metrics.repeated_noise import RepeatedNoise
from ppdm_core.metrics.singling_rate import SinglingRate
from ppdm_core.metrics.source_posterior import SourcePosterior
from ppdm_core.metrics.source_rate import SourceRate
from ppdm_core.metrics.stress import Stress
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
    "radius_knn_accuracy": RadiusKnnAccuracy(),
    "naive_bayes_accuracy": NaiveBayesAccuracy(),
    "neural_network_accuracy": NeuralNetworkAccuracy(),
    "best_accuracy": BestAccuracy(),
    "deterioration": Deterioration(),
    "cluster_f_measure": ClusterFMeasure(),
    "adjusted_rand": AdjustedRand(),
    "class_compactness": ClassCompactness(),
    "neighbourhood_preservation": NeighbourhoodPreservation(),
    "distance_loss": DistanceLoss(),
    "distance_correlation": DistanceCorrelation(),
    "stress": Stress(),
    "column_distance": ColumnDistance(),
    "correlation_error": CorrelationError(),
    "frequency_error": FrequencyError(),
    "copied_records": CopiedRecords(),
    "hidden_digits": HiddenDigits(),
    "recomputed_noise": RecomputedNoise(),
    "repeated_noise": RepeatedNoise(),
    "predictable_noise": PredictableNoise(),
    "closest_record": ClosestRecord(),
    "dapl_held_out": DaplHeldOut(),
    "dapl_plug_in": DaplPlugIn(),
    "order_privacy": OrderPrivacy(),
    "order_guesses": OrderGuesses(),
}
# Each of these is reported together with its deterioration, as knn_accuracy.deterioration.
CLASSIFIERS = tuple(name for name, metric in METRICS.items() if isinstance(metric, Accuracy))

__all__ = [
    "CLASSIFIERS",
    "METRICS",
    "AttackMetric",
    "InferMetric",
    "LinkMetric",
    "Measurement",
    "MemberMetric",
    "Metric",
    "NormMetric",
    "PairMetric",
    "ReconstructMetric",
    "ReleaseComparison",
    "ReleaseMetric",
    "SentenceValues",
    "SingleOutMetric",
    "SourceMetric",
]
