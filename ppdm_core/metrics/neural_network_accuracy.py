from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Public


@dataclass(frozen=True)
class NeuralNetworkAccuracy(Accuracy):
    """Share of records that a small neural network classifies correctly, trained on the release.

    Sixteen neurons, 50 steps of L-BFGS with a penalty on weights: quick, and steady in noise. Of
    each training side at most 2,000 random rows are learned from, on the original as on the
    release: with all of a large table a network can do better. Folds and records as for
    ``knn_accuracy``.

    References: Tan, Ng (2007) compare errors of a small network.
    """

    name: ClassVar[str] = "neural_network_accuracy"
    who: ClassVar[str] = "a small neural network"
    most_rows: ClassVar[int | None] = 2_000
    describe: ClassVar[str] = "share of records that a small neural network classifies correctly"

    def classify(
        self, public: Public, rows: Floats, label: Codes, asked: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        from threadpoolctl import threadpool_limits

        from ppdm_core.miners import MINERS

        miner = MINERS["neural_network"](solver="lbfgs", alpha=1.0, max_iter=50)
        with threadpool_limits(limits=1):  # on such small tables threads only wait for each other
            return miner.fit(rows, label).predict(asked), {}
