"""K-means on a release and on its original, and tables of how groups overlap."""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Compared
from ppdm_core.metrics._release import check_compared, some_of
from ppdm_core.model.arrays import Floats, Ints

ROWS = 10_000
STARTS = 5
WITHOUT_CLASSES = 5  # clusters, where no label says how many


def clustered(name: str, compared: Compared) -> tuple[Ints, Ints]:
    """Rows that were clustered, and the cluster of each."""
    check_compared(name, compared)

    def found() -> tuple[Ints, Ints]:
        rows = some_of(len(compared.Y), ROWS, compared.rng("clustered rows"))
        return rows, kmeans(compared.rows[rows], clusters_of(compared))

    return compared.once("clusters", found)


def clusters_of(compared: Compared) -> int:
    """As many as there are classes."""
    label = compared.label
    return WITHOUT_CLASSES if bool((label < 0).any()) else max(2, len(np.unique(label)))


def kmeans(Y: Floats, count: int) -> Ints:
    """The best of five starts, which are the same ones for every table."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    different, cluster = np.unique(Y, axis=0, return_inverse=True)
    if len(different) > count:
        centred = Y - Y.mean(axis=0)
        unit = float(np.abs(centred).max())
        with threadpool_limits(limits=1):  # on so few rows threads only wait for each other
            cluster = KMeans(count, n_init=STARTS, random_state=0).fit_predict(centred / unit)
    return cluster.ravel().astype(np.int64)


def overlaps(one: Ints, other: Ints) -> Floats:
    """How many are in group i of one and in group j of the other."""
    shape = int(one.max()) + 1, int(other.max()) + 1
    counts = np.bincount(one * shape[1] + other, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)
