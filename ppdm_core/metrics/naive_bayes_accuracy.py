from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Public


@dataclass(frozen=True)
class NaiveBayesAccuracy(Accuracy):
    """Share of records that Gaussian naive Bayes classifies correctly, trained on the release.

    Variances have a floor, and the variance of the noise is taken off where it is published. All
    rows of the other folds are learned from. Folds and records as for ``knn_accuracy``.

    References: Tan, Ng (2007) compare errors of naive Bayes; without a floor theirs is 0 on
    Ionosphere, where columns do not vary.
    """

    name: ClassVar[str] = "naive_bayes_accuracy"
    who: ClassVar[str] = "naive Bayes"
    describe: ClassVar[str] = "share of records that naive Bayes classifies correctly"

    def classify(
        self, public: Public, rows: Floats, label: Codes, asked: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        from ppdm_core.miners import MINERS

        miner = MINERS["naive_bayes"].from_public(public)
        return miner.fit(rows, label).predict(asked), {}
