from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.neighbours import find_nearest

_NEIGHBOURS = 5


class KnnAccuracy(Accuracy):
    """Share of records whose label is the majority among the 5 nearest rows of other records.

    Rows that are as far as the fifth share its vote; a tied vote goes to the smallest label. Five
    stratified folds; if there are more than 2,000 records, a random sample of 2,000 is classified,
    by all rows of the other folds. The test records carry no noise: they are mapped by the public
    map, by that of the steward if it is secret, unchanged if the columns are the original ones, or
    placed by distances.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008) and Mukherjee, Chen,
    Gangopadhyay (2008) use k = 5 as their baseline classifier.
    """

    name = "knn_accuracy"
    title = "Five nearest neighbours are right"
    describe = "share of records that 5 nearest neighbours classify correctly"
    subject = "five nearest neighbours"
    verb = "classify"
    in_quick_audit = True

    def classify(
        self, public: PublicParameters, rows: Floats, label: Codes, queries: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        predicted = np.empty(len(queries), dtype=np.int64)
        classes = int(label.max()) + 1
        for near in find_nearest(queries, rows, min(_NEIGHBOURS, len(rows))):
            count = near.rows.stop - near.rows.start
            place = near.row * classes + label[near.column]
            votes = np.bincount(place, near.weight, minlength=count * classes)
            votes = np.round(votes.reshape(count, classes), 9)  # shared votes add up exactly
            predicted[near.rows] = votes.argmax(axis=1)  # the first largest is the smallest label
        return predicted, {}
