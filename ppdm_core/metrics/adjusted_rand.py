from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._clusters import ROWS, clustered, overlaps
from ppdm_core.metrics._comparison import Bools, Compared, Measured
from ppdm_core.metrics._metric import Told, percent
from ppdm_core.metrics._release import OfRelease, check_one_row_each
from ppdm_core.model.arrays import Ints


@dataclass(frozen=True)
class AdjustedRand(OfRelease):
    """How far clusters of the release agree with clusters of the original: the adjusted Rand index.

    1 when the same people are together, 0 when it is as if by lot. K-means with as many clusters
    as classes (five, if there is no label), the best of the same five starts on both, on at most
    10,000 random records. The interval comes from leaving out records, with the clusters as they
    are.

    References: Hubert, Arabie, "Comparing partitions" (1985).
    """

    name: ClassVar[str] = "adjusted_rand"
    bounds: ClassVar[tuple[float, float]] = (-0.5, 1.0)
    most: ClassVar[int] = ROWS
    describe: ClassVar[str] = "agreement of clusters of the release with those of the original"

    def measure(self, compared: Compared) -> Measured:
        check_one_row_each(self.name, compared)
        records, before = clustered(self.name, compared.original)
        _, after = clustered(self.name, compared)

        def on(keep: Bools) -> float:
            kept = keep[records]
            return adjusted_rand(before[kept], after[kept]) if kept.sum() > 1 else float("nan")

        return Measured(adjusted_rand(before, after), on)

    def original(self, compared: Compared) -> float:
        return 1.0

    def baseline(self, compared: Compared) -> float:
        return 0.0

    def sentence(self, told: Told) -> str:
        return (
            f"Clusters of the release agree with those of the original to {percent(told.value)} "
            "(adjusted Rand index); clusters by lot, 0.0 %."
        )


def adjusted_rand(one: Ints, other: Ints) -> float:
    counts = overlaps(one, other)
    together = float(pairs(counts).sum())
    first, second = (float(pairs(counts.sum(axis=axis)).sum()) for axis in (1, 0))
    chance = first * second / float(pairs(counts.sum()))
    most = (first + second) / 2
    return 1.0 if most == chance else (together - chance) / (most - chance)


def pairs(counts: np.ndarray) -> np.ndarray:
    return np.asarray(counts * (counts - 1) / 2)
