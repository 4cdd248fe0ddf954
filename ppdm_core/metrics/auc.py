from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ppdm_core.metrics._membership import check_scores, tie_counts
from ppdm_core.metrics._metric import Better, Kind, MemberMetric, Told, percent
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.intervals import wilson


@dataclass(frozen=True)
class Auc(MemberMetric):
    """Chance that a member scores higher than a non-member; a tie counts half.

    References: DeLong, DeLong, Clarke-Pearson (1988), the error of the area under the curve.
    """

    name: ClassVar[str] = "auc"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["member"]] = "member"
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    describe: ClassVar[str] = "chance that a member is told from a non-member"

    def measure(self, score: Floats, is_member: NDArray[np.bool_]) -> float:
        check_scores(self.name, score, is_member)
        members, others = tie_counts(score, is_member)  # of each value, falling
        below = others.sum() - np.cumsum(others)
        wins = float(np.sum(members * (below + others / 2.0)))
        return wins / (float(members.sum()) * float(others.sum()))

    def interval(
        self,
        asked: Sequence[tuple[Floats, NDArray[np.bool_]]],
        members: int,
        others: int,
        level: float,
    ) -> tuple[float, float]:
        """Wilson's, for as many trials as would be that sure.

        The error is DeLong's. One more member and one more non-member at either end keep it from
        vanishing where all members are above all others.
        """
        chance, of_members, of_others = np.mean([_spread(*one) for one in asked], axis=0)
        error = of_members / members + of_others / others
        trials = max(chance * (1.0 - chance) / error, min(members, others))
        value = float(np.mean([self.measure(*one) for one in asked]))
        return wilson(value, int(trials), level)

    def baseline(self, is_member: NDArray[np.bool_]) -> float:
        """A coin."""
        return 0.5

    def sentence(self, told: Told) -> str:
        return (
            f"{told.story} Of a member and a non-member that picks the member in "
            f"{percent(told.value)} of "
            f"the cases; a coin does so in {percent(told.baseline)}."
        ).strip()


def _spread(score: Floats, is_member: NDArray[np.bool_]) -> tuple[float, float, float]:
    """The chance, and how much it varies over members and over non-members."""
    members, others = (np.pad(each, 1, constant_values=1) for each in tie_counts(score, is_member))
    below = others.sum() - np.cumsum(others) + others / 2.0  # of each value, falling
    above = np.cumsum(members) - members / 2.0
    wins_of_member, wins_over_other = below / others.sum(), above / members.sum()
    chance = float(np.average(wins_of_member, weights=members))
    return (
        chance,
        float(np.cov(wins_of_member, fweights=members)),
        float(np.cov(wins_over_other, fweights=others)),
    )
