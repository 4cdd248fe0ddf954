from __future__ import annotations

from dataclasses import replace

import numpy as np

from ppdm_core.metrics._accuracy import MAX_RECORDS, Accuracy
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric, SentenceValues
from ppdm_core.metrics._release import check_labels
from ppdm_core.model.errors import NotApplicable


class BestAccuracy(ReleaseMetric):
    """The largest accuracy: that of a recipient who uses the best classifier.

    The largest of the accuracies of all registered classifiers, as far as they apply, by their
    means over the draws. The classifier is chosen on the records that it is reported for, so the
    lower end of the interval is widened for the choice: with k classifiers, the lower ends of all k
    accuracies hold at once.
    """

    name = "best_accuracy"
    utility_name = "best_accuracy"
    title = "The best classifier is right"
    describe = "share of records that the best classifier predicts correctly"
    template = (
        "The best classifier{story} classifies {value} of the records correctly{original}; always "
        "predicting the most common label, {baseline}."
    )
    interval_method = "mean"
    needs_label = True
    max_records = MAX_RECORDS
    in_summary = True

    def find_applicable(self, comparison: ReleaseComparison) -> tuple[Accuracy, ...]:
        """Return the classifiers that apply to this release; NotApplicable if there is none."""
        from ppdm_core.metrics import METRICS  # which holds this class too

        check_labels(self.name, comparison)
        classifiers = (one for one in METRICS.values() if isinstance(one, Accuracy))
        found = tuple(one for one in classifiers if can_apply(one, comparison))
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
        return self.find_applicable(comparison)[0].baseline(comparison)

    def sentence(self, values: SentenceValues) -> str:
        story = f", {values.story}," if values.story else ""
        return super().sentence(replace(values, story=story))


def can_apply(metric: Accuracy, comparison: ReleaseComparison) -> bool:
    """Return whether the classifier applies to the release."""
    try:
        metric.cross_validate(comparison)
    except NotApplicable:
        return False
    return True
