from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._accuracy import MAX_RECORDS, Accuracy
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import SentenceValues, percent
from ppdm_core.metrics._release import ReleaseMetricBase, check_labels, format_original
from ppdm_core.metrics.knn_accuracy import KnnAccuracy
from ppdm_core.metrics.naive_bayes_accuracy import NaiveBayesAccuracy
from ppdm_core.metrics.neural_network_accuracy import NeuralNetworkAccuracy
from ppdm_core.metrics.radius_knn_accuracy import RadiusKnnAccuracy
from ppdm_core.model.errors import NotApplicable


@dataclass(frozen=True)
class BestAccuracy(ReleaseMetricBase):
    """The largest accuracy: that of a recipient who uses the best classifier.

    The largest of ``knn_accuracy``, ``radius_knn_accuracy``, ``naive_bayes_accuracy`` and
    ``neural_network_accuracy``, as far as they apply, by their means over the draws. The classifier
    is chosen on the records that it is reported for, so the interval is widened for the choice:
    with k classifiers it covers all k accuracies at once.
    """

    name: ClassVar[str] = "best_accuracy"
    is_rate: ClassVar[bool] = True
    needs_label: ClassVar[bool] = True
    max_records: ClassVar[int] = MAX_RECORDS
    in_summary: ClassVar[bool] = True
    describe: ClassVar[str] = "share of records that the best classifier predicts correctly"
    classifiers: ClassVar[tuple[Accuracy, ...]] = (
        KnnAccuracy(),
        RadiusKnnAccuracy(),
        NaiveBayesAccuracy(),
        NeuralNetworkAccuracy(),
    )

    def find_applicable(self, comparison: ReleaseComparison) -> tuple[Accuracy, ...]:
        """Return the classifiers that apply to this release; NotApplicable if there is none."""
        check_labels(self.name, comparison)
        found = tuple(one for one in self.classifiers if can_apply(one, comparison))
        if not found:
            raise NotApplicable(f"{self.name} needs a classifier that applies to the release.")
        return found

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        measured = [one.measure(comparison) for one in self.find_applicable(comparison)]
        return measured[int(np.argmax([one.value for one in measured]))]

    def original(self, comparison: ReleaseComparison) -> float:
        return max(one.original(comparison) for one in self.find_applicable(comparison))

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the share of the most common label."""
        return self.classifiers[0].baseline(comparison)

    def sentence(self, values: SentenceValues) -> str:
        subject = f", {values.story}," if values.story else ""
        return (
            f"The best classifier{subject} classifies {percent(values.value)} of the records "
            f"correctly{format_original(values.original)}; always predicting the most common "
            f"label, {percent(values.baseline)}."
        )


def can_apply(metric: Accuracy, comparison: ReleaseComparison) -> bool:
    """Return whether the classifier applies to the release."""
    try:
        metric.cross_validate(comparison)
    except NotApplicable:
        return False
    return True
