from __future__ import annotations

from ppdm_core.metrics._clusters import MAX_ROWS, cluster_rows
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._release import check_one_row_each
from ppdm_core.model.arrays import Bools, Ints


class AdjustedRand(ReleaseMetric):
    """Agreement of the clusters of the release with those of the original: adjusted Rand index.

    1 if the clusters hold the same records, 0 for random clusters. K-means with as many clusters
    as classes (five without a label), the best of the same five starts on both tables, on at most
    10,000 random records. The interval comes from leaving out records without clustering again, and
    other noise may give other clusters, so that it is too narrow for a limit.

    References: Hubert, Arabie, "Comparing partitions" (1985).
    """

    name = "adjusted_rand"
    utility_name = "clusters"
    title = "Clusters match those of the original"
    describe = "agreement of clusters of the release with those of the original"
    template = (
        "The clusters of the release agree with those of the original to {value} (adjusted Rand "
        "index); random clusters, 0.0 %."
    )
    bounds = (-0.5, 1.0)
    max_records = MAX_ROWS
    on_original = 1.0
    gateable = False

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_one_row_each(self.name, comparison)
        records, before = cluster_rows(self.name, comparison.original)
        _, after = cluster_rows(self.name, comparison)

        def recompute(keep: Bools) -> float:
            mask = keep[records]
            return adjusted_rand(before[mask], after[mask]) if mask.sum() > 1 else float("nan")

        return Measurement(adjusted_rand(before, after), recompute)

    def baseline(self, comparison: ReleaseComparison) -> float:
        return 0.0


def adjusted_rand(one: Ints, other: Ints) -> float:
    """Return the adjusted Rand index of two clusterings."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(one, other))
