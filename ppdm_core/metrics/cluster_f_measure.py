from __future__ import annotations

import numpy as np

from ppdm_core.metrics._clusters import MAX_ROWS, cluster_rows
from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._release import check_labels
from ppdm_core.model.arrays import Bools, Ints


class ClusterFMeasure(ReleaseMetric):
    """Agreement of the clusters of the release with the classes: F measure.

    The sum over classes of their share times the best F1 of the class among the clusters, which
    balances the purity of a cluster against the share of the class that it holds. K-means with as
    many clusters as classes, the best of five starts, on at most 10,000 random rows. The baseline
    is a single cluster. The interval comes from leaving out rows without clustering again, and
    other noise may give other clusters, so that it is too narrow for a limit.

    References: Mukherjee, Chen, Gangopadhyay (2008), F measure of clusterings.
    """

    name = "cluster_f_measure"
    title = "Clusters match the classes"
    describe = "agreement of K-means on the release with the classes (F measure)"
    template = (
        "Clusters find the classes with an F measure of {value}{original}; a single cluster, "
        "{baseline}."
    )
    needs_label = True
    gateable = False
    max_records = MAX_ROWS

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_labels(self.name, comparison)
        rows, cluster = cluster_rows(self.name, comparison)
        label = comparison.row_label[rows].astype(np.int64)

        def recompute(keep: Bools) -> float:
            mask = comparison.select_rows(keep)[rows]
            return f_measure(label[mask], cluster[mask]) if mask.any() else float("nan")

        return Measurement(f_measure(label, cluster), recompute)

    def baseline(self, comparison: ReleaseComparison) -> float:
        label = comparison.label.astype(np.int64)
        return f_measure(label, np.zeros_like(label))


def f_measure(label: Ints, cluster: Ints) -> float:
    """Return the F measure of clusters against classes."""
    from sklearn.metrics.cluster import contingency_matrix

    counts = contingency_matrix(label, cluster)  # (classes, clusters)
    classes, clusters = counts.sum(axis=1), counts.sum(axis=0)
    F = 2 * counts / (classes[:, None] + clusters)
    return float(classes @ F.max(axis=1) / classes.sum())
