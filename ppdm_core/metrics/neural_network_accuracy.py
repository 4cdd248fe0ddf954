from __future__ import annotations

from collections.abc import Mapping

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import PublicParameters


class NeuralNetworkAccuracy(Accuracy):
    """Share of records that a small neural network classifies correctly, trained on the release.

    Sixteen neurons and 50 steps of L-BFGS with a penalty on weights: fast, and stable under noise.
    Trained on at most 2,000 random rows of the other folds, on the original as on the release; with
    all rows of a large table a network can do better. Folds and records as for ``knn_accuracy``.

    References: Tan, Ng (2007) compare errors of a small network.
    """

    name = "neural_network_accuracy"
    title = "A small neural network is right"
    describe = "share of records that a small neural network classifies correctly"
    subject = "a small neural network"
    max_training_rows = 2_000

    def classify(
        self, public: PublicParameters, rows: Floats, label: Codes, queries: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        from threadpoolctl import threadpool_limits

        from ppdm_core.miners.neural_network import NeuralNetwork

        miner = NeuralNetwork(solver="lbfgs", alpha=1.0, max_iter=50)
        with threadpool_limits(limits=1):  # threads do not pay off on small tables
            return miner.fit(rows, label).predict(queries), {}
