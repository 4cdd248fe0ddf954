from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ppdm_core.metrics._membership import check_scores, count_ties
from ppdm_core.metrics._metric import MemberMetric
from ppdm_core.model.arrays import Bools, Floats
from ppdm_core.numerics.intervals import clopper_pearson


class Auc(MemberMetric):
    """Probability that a member scores higher than a non-member; a tie counts half.

    References: Hoeffding (1963), section 5: such a mean is no less sure than that of independent
    pairs.
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
        """Return the interval of a rate in as many pairs as the smaller group has persons.

        The value is a mean over all ways to pair each of them with another person of the larger
        group, so that it differs less from the true one than the rate in one such pairing.
        """
        value = float(np.mean([self.measure(*one) for one in trials]))
        n = min(members, others)
        return clopper_pearson(value * n, n, level)

    def baseline(self, is_member: Bools) -> float:
        """Return the value of random scores."""
        return 0.5
