from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._clusters import MAX_ROWS, cluster_rows, count_overlaps
from ppdm_core.metrics._comparison import Bools, Measurement, ReleaseComparison
from ppdm_core.metrics._metric import SentenceValues, percent
from ppdm_core.metrics._release import ReleaseMetricBase, check_labels, format_original
from ppdm_core.model.arrays import Ints


@dataclass(frozen=True)
class ClusterFMeasure(ReleaseMetricBase):
    """Agreement of the clusters of the release with the classes: F measure.

    The sum over classes of their share times the best F1 of the class among the clusters, which
    balances the purity of a cluster against the share of the class that it holds. K-means with as
    many clusters as classes, the best of five starts, on at most 10,000 random rows. The interval
    comes from leaving out rows without clustering again. The baseline is a single cluster.

    References: Mukherjee, Chen, Gangopadhyay (2008), F measure of clusterings.
    """

    name: ClassVar[str] = "cluster_f_measure"
    needs_label: ClassVar[bool] = True
    max_records: ClassVar[int] = MAX_ROWS
    describe: ClassVar[str] = "agreement of K-means on the release with the classes (F measure)"

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_labels(self.name, comparison)
        rows, cluster = cluster_rows(self.name, comparison)
        label = comparison.row_label[rows].astype(np.int64)

        def recompute(keep: Bools) -> float:
            mask = comparison.select_rows(keep)[rows]
            return f_measure(label[mask], cluster[mask]) if mask.any() else float("nan")

        return Measurement(f_measure(label, cluster), recompute)

    def original(self, comparison: ReleaseComparison) -> float:
        return self.measure(comparison.original).value

    def baseline(self, comparison: ReleaseComparison) -> float:
        return f_measure(
            comparison.label.astype(np.int64), np.zeros(len(comparison.label), dtype=np.int64)
        )

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"Clusters find the classes with an F measure of {percent(values.value)}"
            f"{format_original(values.original)}; a single cluster, {percent(values.baseline)}."
        )


def f_measure(label: Ints, cluster: Ints) -> float:
    """Return the F measure of clusters against classes."""
    counts = count_overlaps(label, cluster)  # (classes, clusters)
    classes, clusters = counts.sum(axis=1), counts.sum(axis=0)
    sizes = classes[:, None] + clusters
    F = np.divide(2 * counts, sizes, out=np.zeros_like(counts), where=sizes > 0)
    return float(classes @ F.max(axis=1) / classes.sum())
