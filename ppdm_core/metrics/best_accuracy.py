from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._accuracy import ASKED, Accuracy
from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.metrics._release import OfRelease, check_labelled, on_original
from ppdm_core.metrics.knn_accuracy import KnnAccuracy
from ppdm_core.metrics.naive_bayes_accuracy import NaiveBayesAccuracy
from ppdm_core.metrics.neural_network_accuracy import NeuralNetworkAccuracy
from ppdm_core.metrics.radius_knn_accuracy import RadiusKnnAccuracy
from ppdm_core.model.errors import NotApplicable


@dataclass(frozen=True)
class BestAccuracy(OfRelease):
    """The largest of the accuracies: what a recipient gets who takes the best classifier.

    Of ``knn_accuracy``, ``radius_knn_accuracy``, ``naive_bayes_accuracy`` and
    ``neural_network_accuracy`` those that apply, by their means over the draws. It is found with
    the very records that it is told for, so that its interval is widened for the choice: with k
    classifiers it is the one that covers all k accuracies at once.
    """

    name: ClassVar[str] = "best_accuracy"
    is_rate: ClassVar[bool] = True
    needs_label: ClassVar[bool] = True
    most: ClassVar[int] = ASKED
    in_summary: ClassVar[bool] = True
    describe: ClassVar[str] = "share of records that the best classifier gets right"
    choices: ClassVar[tuple[Accuracy, ...]] = (
        KnnAccuracy(),
        RadiusKnnAccuracy(),
        NaiveBayesAccuracy(),
        NeuralNetworkAccuracy(),
    )

    def applicable(self, compared: Compared) -> tuple[Accuracy, ...]:
        check_labelled(self.name, compared)
        found = tuple(one for one in self.choices if applies(one, compared))
        if not found:
            raise NotApplicable(f"No classifier applies, of which {self.name} would be the best.")
        return found

    def measure(self, compared: Compared) -> Measured:
        measured = [one.measure(compared) for one in self.applicable(compared)]
        return measured[int(np.argmax([one.value for one in measured]))]

    def original(self, compared: Compared) -> float:
        return max(one.original(compared) for one in self.applicable(compared))

    def baseline(self, compared: Compared) -> float:
        """Always answer the commonest label."""
        return self.choices[0].baseline(compared)

    def sentence(self, told: Told) -> str:
        who = f", {told.story}," if told.story else ""
        return (
            f"The best of the classifiers{who} gets {percent(told.value)} of the records right"
            f"{on_original(told.original)}; always answering the commonest label, "
            f"{percent(told.baseline)}."
        )


def applies(metric: Accuracy, compared: Compared) -> bool:
    try:
        metric.answered(compared)
    except NotApplicable:
        return False
    return True
