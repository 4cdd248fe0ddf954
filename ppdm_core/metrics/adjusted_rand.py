from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._clusters import MAX_ROWS, cluster_rows, count_overlaps
from ppdm_core.metrics._comparison import Bools, Measurement, ReleaseComparison
from ppdm_core.metrics._metric import SentenceValues, percent
from ppdm_core.metrics._release import ReleaseMetricBase, check_one_row_each
from ppdm_core.model.arrays import Ints


@dataclass(frozen=True)
class AdjustedRand(ReleaseMetricBase):
    """Agreement of the clusters of the release with those of the original: adjusted Rand index.

    1 if the clusters hold the same records, 0 for random clusters. K-means with as many clusters
    as classes (five without a label), the best of the same five starts on both tables, on at most
    10,000 random records. The interval comes from leaving out records without clustering again.

    References: Hubert, Arabie, "Comparing partitions" (1985).
    """

    name: ClassVar[str] = "adjusted_rand"
    bounds: ClassVar[tuple[float, float]] = (-0.5, 1.0)
    max_records: ClassVar[int] = MAX_ROWS
    describe: ClassVar[str] = "agreement of clusters of the release with those of the original"

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_one_row_each(self.name, comparison)
        records, before = cluster_rows(self.name, comparison.original)
        _, after = cluster_rows(self.name, comparison)

        def recompute(keep: Bools) -> float:
            mask = keep[records]
            return adjusted_rand(before[mask], after[mask]) if mask.sum() > 1 else float("nan")

        return Measurement(adjusted_rand(before, after), recompute)

    def original(self, comparison: ReleaseComparison) -> float:
        return 1.0

    def baseline(self, comparison: ReleaseComparison) -> float:
        return 0.0

    def sentence(self, values: SentenceValues) -> str:
        return (
            "The clusters of the release agree with those of the original to "
            f"{percent(values.value)} (adjusted Rand index); random clusters, 0.0 %."
        )


def adjusted_rand(one: Ints, other: Ints) -> float:
    """Return the adjusted Rand index of two clusterings."""
    counts = count_overlaps(one, other)
    together = float(pairs(counts).sum())
    first, second = (float(pairs(counts.sum(axis=axis)).sum()) for axis in (1, 0))
    chance = first * second / float(pairs(counts.sum()))
    largest = (first + second) / 2
    return 1.0 if largest == chance else (together - chance) / (largest - chance)


def pairs(counts: np.ndarray) -> np.ndarray:
    """Return the number of pairs within groups of these sizes."""
    return np.asarray(counts * (counts - 1) / 2)
