from __future__ import annotations

from collections.abc import Mapping

from ppdm_core.metrics._accuracy import Accuracy
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import PublicParameters


class RadiusKnnAccuracy(Accuracy):
    """Share of records that all rows within the published radius classify correctly.

    The squared radius is the mean of the published distortion of squared distances plus two of its
    standard deviations. Rows are weighted by 1 over their squared distance, and if the ball is
    empty the 5 nearest vote. The metric applies if these moments are published. On the original
    table, whose distortion is 0, the 5 nearest vote. The notes hold how often the ball was empty,
    how many rows were in it, and how often the most common label won: a large ball holds nearly
    all rows, and then the most common label wins. Trained on at most 20,000 random rows of the
    other folds, on the original as on the release. Folds and records as for ``knn_accuracy``.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), equations 12 and 13, with 1/d^2
    as the weight.
    """

    name = "radius_knn_accuracy"
    title = "Neighbours within the radius are right"
    describe = "share of records that rows within the radius classify correctly"
    subject = "neighbours within the published radius"
    verb = "classify"
    max_training_rows = 20_000

    def classify(
        self, public: PublicParameters, rows: Floats, label: Codes, queries: Floats
    ) -> tuple[Ints, Mapping[str, float]]:
        from ppdm_core.miners.radius_knn import RadiusKNN

        is_original = public.method == "original"
        miner = RadiusKNN() if is_original else RadiusKNN.from_public(public)
        report = miner.fit(rows, label).report(queries)
        notes = {
            "empty_balls": report.fallbacks / len(queries),
            "rows_in_the_ball": report.mean_neighbours,
            "commonest_label": report.majority_rate,
        }
        return report.answers, notes
