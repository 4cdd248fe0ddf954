from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._clusters import ROWS, clustered, overlaps
from ppdm_core.metrics._comparison import Bools, Compared, Measured
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.metrics._release import OfRelease, check_labelled, on_original
from ppdm_core.model.arrays import Ints


@dataclass(frozen=True)
class ClusterFMeasure(OfRelease):
    """How well clusters of the release find the classes: each class with the cluster that fits.

    The sum over classes of their share times the best F1 of the class among the clusters, which
    weighs how pure a cluster is against how much of the class it holds. K-means with as many
    clusters as classes, the best of five starts, on at most 10,000 random rows. The interval comes
    from leaving out rows, with the clusters as they are. The baseline is one cluster for all.

    References: Mukherjee, Chen, Gangopadhyay (2008), F measure of clusterings.
    """

    name: ClassVar[str] = "cluster_f_measure"
    needs_label: ClassVar[bool] = True
    most: ClassVar[int] = ROWS
    describe: ClassVar[str] = "how well K-means on the release finds the classes (F measure)"

    def measure(self, compared: Compared) -> Measured:
        check_labelled(self.name, compared)
        rows, cluster = clustered(self.name, compared)
        label = compared.row_label[rows].astype(np.int64)

        def on(keep: Bools) -> float:
            kept = compared.rows_of(keep)[rows]
            return f_measure(label[kept], cluster[kept]) if kept.any() else float("nan")

        return Measured(f_measure(label, cluster), on)

    def original(self, compared: Compared) -> float:
        return self.measure(compared.original).value

    def baseline(self, compared: Compared) -> float:
        return f_measure(
            compared.label.astype(np.int64), np.zeros(len(compared.label), dtype=np.int64)
        )

    def sentence(self, told: Told) -> str:
        return (
            f"Clusters find the classes with an F measure of {percent(told.value)}"
            f"{on_original(told.original)}; one cluster for all, {percent(told.baseline)}."
        )


def f_measure(label: Ints, cluster: Ints) -> float:
    counts = overlaps(label, cluster)  # (classes, clusters)
    classes, clusters = counts.sum(axis=1), counts.sum(axis=0)
    sizes = classes[:, None] + clusters
    F = np.divide(2 * counts, sizes, out=np.zeros_like(counts), where=sizes > 0)
    return float(classes @ F.max(axis=1) / classes.sum())
