from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Public


@dataclass(frozen=True)
class RadiusKnnAccuracy(Accuracy):
    """Share of records that all rows within the published radius classify correctly.

    The squared radius is the mean of the published distortion of squared distances and two of its
    standard deviations; rows count by 1 over their squared distance, and where the ball is empty
    the 5 nearest vote. It applies where these moments are published. On the original table, whose
    distortion is 0, the 5 nearest vote. The notes tell how often the ball was empty, how many rows
    were in it, and how often the commonest label won: a large ball holds nearly everybody, and
    then the commonest label wins by numbers. Of each training side at most 20,000 random rows are
    learned from, on the original as on the release. Folds and records as for ``knn_accuracy``.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), equations 12 and 13, with 1/d^2
    as the weight.
    """

    name: ClassVar[str] = "radius_knn_accuracy"
    who: ClassVar[str] = "neighbours within the published radius"
    verb: ClassVar[str] = "classify"
    most_rows: ClassVar[int | None] = 20_000
    describe: ClassVar[str] = "share of records that rows within the radius classify correctly"

    def classify(
        self, public: Public, rows: Floats, label: Codes, asked: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        from ppdm_core.miners import MINERS

        miner = MINERS["radius_knn"]
        made = miner() if public.method == "original" else miner.from_public(public)
        report = made.fit(rows, label).report(asked)
        notes = {
            "empty_balls": report.fallbacks / len(asked),
            "rows_in_the_ball": report.mean_neighbours,
            "commonest_label": report.majority_rate,
        }
        return report.answers, notes
