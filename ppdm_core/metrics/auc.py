from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ppdm_core.metrics._membership import check_scores, count_ties
from ppdm_core.metrics._metric import MemberMetric
from ppdm_core.model.arrays import Bools, Floats
from ppdm_core.numerics.intervals import wilson


class Auc(MemberMetric):
    """Probability that a member scores higher than a non-member; a tie counts half.

    References: DeLong, DeLong, Clarke-Pearson (1988), standard error of the area under the curve.
    """

    name = "auc"
    describe = "probability that a member scores higher than a non-member"
    template = (
        "{story} Given a member and a non-member, that picks the member in {value} of the cases; a "
        "random guess, in {baseline}."
    )
    is_headline = True
    ceiling = 0.1  # if a share q of the members is recognised, and no other, the value is (1 + q)/2

    def measure(self, score: Floats, is_member: Bools) -> float:
        check_scores(self.name, score, is_member)
        members, others = count_ties(score, is_member)  # for each score, descending
        below = others.sum() - np.cumsum(others)
        wins = float(np.sum(members * (below + others / 2.0)))
        return wins / (float(members.sum()) * float(others.sum()))

    def interval(
        self, trials: Sequence[tuple[Floats, Bools]], members: int, others: int, level: float
    ) -> tuple[float, float]:
        """Return Wilson's interval for the number of trials that has the same standard error.

        The error is DeLong's. One more member and one more non-member at either end keep it above
        0 if all members score above all others.
        """
        chance, of_members, of_others = np.mean([_delong(*one) for one in trials], axis=0)
        error = of_members / members + of_others / others
        count = max(chance * (1.0 - chance) / error, min(members, others))
        value = float(np.mean([self.measure(*one) for one in trials]))
        return wilson(value, int(count), level)

    def baseline(self, is_member: Bools) -> float:
        """Return the value of random scores."""
        return 0.5


def _delong(score: Floats, is_member: Bools) -> tuple[float, float, float]:
    """Return the probability, and its variance over members and over non-members."""
    members, others = (np.pad(each, 1, constant_values=1) for each in count_ties(score, is_member))
    below = others.sum() - np.cumsum(others) + others / 2.0  # for each score, descending
    above = np.cumsum(members) - members / 2.0
    wins_of_member, wins_over_other = below / others.sum(), above / members.sum()
    chance = float(np.average(wins_of_member, weights=members))
    return (
        chance,
        float(np.cov(wins_of_member, fweights=members)),
        float(np.cov(wins_over_other, fweights=others)),
    )
