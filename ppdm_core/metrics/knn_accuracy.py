from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Public
from ppdm_core.numerics.neighbours import nearest

_NEIGHBOURS = 5


@dataclass(frozen=True)
class KnnAccuracy(Accuracy):
    """Share of records whose label the 5 nearest released rows of other records vote for.

    Rows that are as far as the fifth share its vote; a tied vote goes to the smallest label. Five
    stratified folds; of more than 2,000 records that many random ones are classified, by all rows
    of the other folds. The records are asked about without noise: by the public map, by the
    steward's where it is secret, in the columns they share, or placed by distances.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008) and Mukherjee, Chen,
    Gangopadhyay (2008) use k = 5 as their baseline classifier.
    """

    name: ClassVar[str] = "knn_accuracy"
    who: ClassVar[str] = "five nearest neighbours"
    verb: ClassVar[str] = "classify"
    in_quick_audit: ClassVar[bool] = True
    describe: ClassVar[str] = "share of records that 5 nearest neighbours classify correctly"

    def classify(
        self, public: Public, rows: Floats, label: Codes, asked: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        answer = np.empty(len(asked), dtype=np.int64)
        classes = int(label.max()) + 1
        for near in nearest(asked, rows, min(_NEIGHBOURS, len(rows))):
            count = near.rows.stop - near.rows.start
            place = near.row * classes + label[near.column]
            votes = np.bincount(place, near.weight, minlength=count * classes)
            votes = np.round(votes.reshape(count, classes), 9)  # parts of a place add up
            answer[near.rows] = votes.argmax(axis=1)  # the first largest is the smallest label
        return answer, {}
