from __future__ import annotations

from collections.abc import Mapping

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import PublicParameters


class NaiveBayesAccuracy(Accuracy):
    """Share of records that Gaussian naive Bayes classifies correctly, trained on the release.

    Variances have a floor, and the variance of the noise is subtracted if it is published.
    Trained on all rows of the other folds. Folds and records as for ``knn_accuracy``.

    References: Tan, Ng (2007) compare errors of naive Bayes; without a floor theirs is 0 on
    Ionosphere, where columns do not vary.
    """

    name = "naive_bayes_accuracy"
    title = "Naive Bayes is right"
    describe = "share of records that naive Bayes classifies correctly"
    subject = "naive Bayes"

    def classify(
        self, public: PublicParameters, rows: Floats, label: Codes, queries: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        from ppdm_core.miners.naive_bayes import NaiveBayes

        miner = NaiveBayes.from_public(public)
        return miner.fit(rows, label).predict(queries), {}
