from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import SingleOutMetric
from ppdm_core.metrics._values import check_finite
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect
from ppdm_core.numerics.statements import count_matches


class SinglingRate(SingleOutMetric):
    """Share of statements that hold for exactly one person of the table.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), singling out, against a control group.
    """

    name = "singling_rate"
    describe = "share of statements that hold for exactly one person"
    template = (
        "{story} {value} of such statements hold for exactly one person in the release; by chance, "
        "estimated on persons outside it, {baseline} would."
    )
    is_headline = True

    def each(self, statements: Floats, table: Floats) -> Floats:
        if statements.ndim != 3 or statements.shape[1:] != (table.shape[1], 2):
            raise Defect(f"{self.name} got statements of shape {statements.shape}.")
        if len(statements) == 0 or len(table) == 0 or bool(np.isnan(statements).any()):
            raise Defect(f"{self.name} got no statements, no persons, or intervals of NaN.")
        check_finite(self.name, table)
        return np.asarray(count_matches(statements, table) == 1, dtype=np.float64)

    def chances(self, statements: Floats, members: Floats, others: Floats) -> Floats:
        """Return how likely each statement holds by chance, among as many persons as members.

        If a release discloses nothing about its members, each person is equally likely to be the
        one for whom a statement holds. So if there are more others than members, the mean over all
        choices of as many others is taken. If there are fewer, they are filled up with members,
        and how often the one is among the others is scaled up to all places.
        """
        n, m = len(members), len(others)
        held = count_matches(statements, others)
        if m >= n:
            return _hit_probability(1, held, m, n)
        no_member = _hit_probability(0, count_matches(statements, members), n, n - m)
        return np.asarray((held == 1) * no_member * n / m)


def _hit_probability(hits: int, held: Ints, persons: int, drawn: int) -> Floats:
    """Probability that a statement holds for ``hits`` of the drawn persons (hypergeometric)."""
    from scipy.special import gammaln

    def log_choices(of: Ints | int, some: Ints | int) -> Floats:  # minus infinity if there is none
        return np.asarray(gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1))

    ways = log_choices(held, hits) + log_choices(persons - held, drawn - hits)
    return np.asarray(np.exp(ways - log_choices(persons, drawn)))
