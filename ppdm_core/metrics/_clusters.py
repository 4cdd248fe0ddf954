"""K-means on a release and on its original."""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._release import check_comparison, sample_indices
from ppdm_core.model.arrays import Floats, Ints

MAX_ROWS = 10_000  # that are clustered
KMEANS_STARTS = 5
DEFAULT_CLUSTERS = 5  # without a label


def cluster_rows(name: str, comparison: ReleaseComparison) -> tuple[Ints, Ints]:
    """Return the rows that were clustered, and the cluster of each."""
    check_comparison(name, comparison)

    def cluster() -> tuple[Ints, Ints]:
        rows = sample_indices(len(comparison.Y), MAX_ROWS, comparison.rng("clustered rows"))
        return rows, run_kmeans(comparison.rows[rows], count_clusters(comparison))

    return comparison.get_or_compute("clusters", cluster)


def count_clusters(comparison: ReleaseComparison) -> int:
    """Return the number of classes, or the default if records have no label."""
    label = comparison.label
    return DEFAULT_CLUSTERS if bool((label < 0).any()) else max(2, len(np.unique(label)))


def run_kmeans(Y: Floats, count: int) -> Ints:
    """Return the cluster of each row: the best of five starts, the same for every table."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    different, cluster = np.unique(Y, axis=0, return_inverse=True)
    if len(different) > count:
        centred = Y - Y.mean(axis=0)
        unit = float(np.abs(centred).max())
        with threadpool_limits(limits=1):  # threads do not pay off on so few rows
            cluster = KMeans(count, n_init=KMEANS_STARTS, random_state=0).fit_predict(
                centred / unit
            )
    return cluster.ravel().astype(np.int64)
