"""Seeds of an approximate match: sets of rows with nearly the distances of some known records."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.policy import Effort
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.distances import compute_squared_distances

_MAX_ROWS = {"quick": 600, "standard": 1_500, "thorough": 6_000}  # larger releases get no seeds
_MAX_SETS = {"quick": 3_000, "standard": 6_000, "thorough": 100_000}
_SET_RECORDS = 9
_MAX_DEVIATIONS = 3.0  # standard deviations of a squared distance
_BLOCK_DISTANCES = 2**22
_MAX_RELATIVE_SPREAD = 0.25  # of squared distances by their mean; beyond, no seeds
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class DistanceDistortion:
    """Released squared distance = factor * original + shift, within the spread."""

    factor: float = 1.0
    shift: float = 0.0
    spread: float = 0.0
    is_relative: bool = False  # the spread is a share of the distance itself

    @classmethod
    def from_public(cls, public: PublicParameters, typical: float) -> DistanceDistortion:
        """Read what the release publishes about its distances; without that, assume a tenth."""
        facts = {name: float(v) for name, v in public.facts.items() if isinstance(v, int | float)}
        if "squared_distance_ratio_mean" in facts:
            variance = facts.get("squared_distance_ratio_variance", 0.0)
            mean = facts["squared_distance_ratio_mean"]
            return cls(mean, 0.0, math.sqrt(max(variance, 0.0)), is_relative=True)
        if "distance_distortion_mean" in facts:
            variance = facts.get("distance_distortion_variance", 0.0)
            spread = math.sqrt(max(variance, (1e-3 * typical) ** 2))
            return cls(1.0, facts["distance_distortion_mean"], spread)
        return cls(1.0, 0.0, 0.1, is_relative=True)

    def predict(self, original: float, typical: float) -> tuple[float, float]:
        """Return mean and standard deviation of the released squared distance."""
        share = original if self.is_relative else math.sqrt(original / max(typical, _TINY))
        mean = self.factor * original + min(self.shift * share, 0.0)
        return mean, self.spread * max(share, 1e-3) + _TINY

    def is_vague(self, typical: float) -> bool:
        """Return whether nearly every distance would fit every other."""
        return self.spread > _MAX_RELATIVE_SPREAD * (1.0 if self.is_relative else typical)


def find_seeds(
    X: Floats, Y: Floats, public: PublicParameters, effort: Effort, count: int
) -> list[tuple[Ints, Ints]]:
    """Return the likeliest sets: which records were placed, and their rows.

    Records are placed one after the other, those far from the others first, because few rows are
    as far apart; a set goes on with every row at fitting distances from all of its rows.
    """
    if len(Y) > _MAX_ROWS[effort]:
        return []
    D = compute_squared_distances(Y, Y).astype(np.float32)
    own = compute_squared_distances(X, X)
    typical = float(np.mean(own))
    distortion = DistanceDistortion.from_public(public, typical)
    if distortion.is_vague(typical):
        return []
    placed = _order_far_apart(own)[:_SET_RECORDS]
    rows, cost = np.arange(len(Y))[:, None], np.zeros(len(Y))
    for step in range(1, len(placed)):
        wanted = own[placed[step], placed[:step]]
        further, dearer = _extend_sets(D, rows, cost, wanted, distortion, typical)
        if len(further) == 0:
            placed = placed[:step]
            break
        best = np.argsort(dearer, kind="stable")[: _MAX_SETS[effort]]
        rows, cost = further[best], dearer[best]
    if len(placed) < 3:
        return []
    return [(placed, one) for one in rows[np.argsort(cost, kind="stable")[:count]]]


def _extend_sets(
    D: NDArray[np.float32],
    rows: Ints,
    cost: Floats,
    wanted: Floats,
    distortion: DistanceDistortion,
    typical: float,
) -> tuple[Ints, Floats]:
    """Return all sets with one more row at fitting distances, and their costs."""
    found, costs = [], []
    size = max(1, _BLOCK_DISTANCES // len(D))
    predictions = [distortion.predict(float(one), typical) for one in wanted]
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        mean, spread = predictions[0]
        seen = D[some[:, 0]]  # (sets, n)
        which, row = np.nonzero(
            (seen >= mean - _MAX_DEVIATIONS * spread) & (seen <= mean + _MAX_DEVIATIONS * spread)
        )
        total = cost[start + which] + ((seen[which, row] - mean) / spread) ** 2
        for j in range(1, len(predictions)):
            z = (D[some[which, j], row] - predictions[j][0]) / predictions[j][1]
            fits = np.abs(z) <= _MAX_DEVIATIONS
            which, row, total = which[fits], row[fits], (total + z**2)[fits]
        fits = np.all(some[which] != row[:, None], axis=1)
        found.append(np.column_stack([some[which[fits]], row[fits]]))
        costs.append(total[fits])
    return np.concatenate(found), np.concatenate(costs)


def _order_far_apart(own: Floats) -> Ints:
    """Return records in an order in which each is as far as possible from those before it."""
    order = [int(own.sum(axis=1).argmax())]
    least = own[order[0]].copy()
    for _ in range(len(own) - 1):
        order.append(int(least.argmax()))
        least = np.minimum(least, own[order[-1]])
    return np.array(order[: len(np.unique(order))], dtype=np.int64)
