"""The choice of cosine coefficients when every party holds other columns of the same persons.

Each party knows the energy bounds of its own columns alone, with zeros in place of all others. The
coefficients to prune must suit every party, so that the choice is an integer programme with
constraints of each (DCT-F, section 3.4). It is solved exactly: sums of shares are integers, every
solution of the solver is checked in these, and a search that is not proven to be complete in time
is refused.

For a fixed number of pruned coefficients the largest ``mu_C`` of the worst party is found by
Dinkelbach's iteration for the smallest of several ratios: with the best level so far as the price
of spread, a set with more room at every party reaches a higher level, and without one the level is
the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers._fuzzy_selection import (
    SHARE_STEP,
    PruningChoice,
    count_membership,
    count_within_budget,
)

TIME_LIMIT = 60.0  # seconds for one programme
ROW_SCALE = 2.0**16  # of constraints: the solver's tolerance is then below a step of a share


@dataclass(frozen=True, eq=False)
class PartyBounds:
    """The energy bounds of one party's columns."""

    name: str
    low: Floats  # (m,)
    spread: Floats  # (m,)


@dataclass(frozen=True, eq=False)
class JointProgramme:
    """The bounds of all parties, and the losses that each of them accepts."""

    parties: Sequence[PartyBounds]
    b: float
    p: float
    time_limit: float = TIME_LIMIT

    @property
    def m(self) -> int:
        return len(self.parties[0].low)

    @property
    def low(self) -> Floats:
        """Least shares, (parties, m)."""
        return np.array([party.low for party in self.parties])

    @property
    def spread(self) -> Floats:
        """Spreads of shares, (parties, m)."""
        return np.array([party.spread for party in self.parties])

    def compute_level(self, pruned: Ints) -> float:
        """Return mu_C of the party that it is smallest for."""
        low, spread = self.low[:, pruned].sum(axis=1), self.spread[:, pruned].sum(axis=1)
        levels = []
        for a, d in zip(low.tolist(), spread.tolist(), strict=True):
            left = self.b + self.p - a
            levels.append(1.0 if a + d <= self.b else max(left, 0.0) / (self.p + d))
        return min(levels)

    def find_roomiest(self, K: int, price: float) -> Ints:
        """Return the ``K`` coefficients that leave the most room to the party with the least."""
        cost = self.low + price * self.spread
        # Variables: one for each coefficient, and the room, which is maximised.
        rows = np.column_stack([cost, np.ones(len(cost))])
        budget = np.full(len(cost), self.b + self.p * (1 - price))
        chosen = solve(np.append(np.zeros(self.m), 1.0), rows, budget, K, self.time_limit)
        return np.flatnonzero(chosen)

    def find_best(self, K: int, start: float) -> tuple[Ints, float]:
        """Return the ``K`` coefficients with the largest mu_C, and mu_C; search from ``start``."""
        pruned = self.find_roomiest(K, start)
        level = self.compute_level(pruned)
        while level < 1.0:
            better = self.find_roomiest(K, level)
            reached = self.compute_level(better)
            if reached <= level:
                break
            pruned, level = better, reached
        return pruned, level

    def count_most(self, shares: Floats, budget: float) -> int:
        """Return the largest number of coefficients whose shares fit every party's budget."""
        upper = min(count_within_budget(each, budget) for each in shares)
        limits = np.full(len(shares), budget)
        for K in range(upper, 0, -1):
            rows = np.column_stack([shares, np.ones(len(shares))])
            chosen = solve(np.append(np.zeros(self.m), 1.0), rows, limits, K, self.time_limit)
            if (shares[:, chosen.astype(bool)].sum(axis=1) <= budget).all():
                return K
        return 0


def solve(gain: Floats, rows: Floats, budget: Floats, K: int, time_limit: float) -> Ints:
    """Return the 0-1 solution of ``rows @ x <= budget`` with K ones and the largest gain.

    The last variable is a real number. Raise BadInput if no solution is proven to be the best in
    time.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    m = len(gain) - 1
    count = np.append(np.ones(m), 0.0)
    found = milp(
        -ROW_SCALE * gain,
        integrality=np.append(np.ones(m), 0.0),
        bounds=Bounds(np.append(np.zeros(m), -np.inf), np.append(np.ones(m), np.inf)),
        constraints=[
            LinearConstraint(ROW_SCALE * rows, -np.inf, ROW_SCALE * budget),
            LinearConstraint(count, K, K),
        ],
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    if found.status != 0 or found.x is None:
        gap = "unknown" if found.mip_gap is None else f"{found.mip_gap:.1%}"
        raise BadInput(
            f"No best choice of coefficients was proven within {time_limit:g} s (gap: {gap}).",
            remedy="Release fewer columns, or change b and p.",
        )
    chosen: Ints = np.rint(found.x[:m]).astype(np.int64)
    return chosen


def choose_jointly(programme: JointProgramme) -> PruningChoice:
    """Return the best choice for all parties, of equal ones that with more pruned coefficients.

    One coefficient is always kept. Raise BadInput that names the parties whose constraints allow no
    coefficient to be pruned.
    """
    low, certain = programme.low, programme.low + programme.spread
    max_pruned = programme.count_most(low, programme.b + programme.p)
    min_pruned = programme.count_most(certain, programme.b)
    best: PruningChoice | None = None
    loss_level = 0.0
    for K in range(programme.m - 1, -1, -1):
        count_level = count_membership(K, min_pruned, max_pruned)
        if best is not None and count_level <= best.level:
            break  # mu_G decreases with K
        pruned, loss_level = programme.find_best(K, loss_level)
        level = min(count_level, loss_level)
        if best is None or level > best.level:
            best = PruningChoice(pruned, loss_level, level)
    assert best is not None
    if best.loss_level == 0.0 or not len(best.pruned):
        raise describe_infeasible(programme)
    return best


def describe_infeasible(programme: JointProgramme) -> BadInput:
    """Return the error of constraints that allow no coefficient to be pruned, with their names."""
    budget = programme.b + programme.p
    tight = [
        party.name
        for party in programme.parties
        if count_within_budget(party.low, budget) == 0 or choose_alone(programme, party) == 0
    ]
    who = " and ".join(f"'{name}'" for name in tight)
    because = (
        f"the constraint of {who} alone excludes each of them"
        if tight
        else f"the constraints of {len(programme.parties)} parties exclude them together"
    )
    return BadInput(
        f"With b = {programme.b:g} and p = {programme.p:g} no coefficient can be pruned: "
        f"{because}.",
        remedy="Raise b or p in [sanitizer], for all parties.",
    )


def choose_alone(programme: JointProgramme, party: PartyBounds) -> int:
    """Return how many coefficients one party alone could prune at a level above 0."""
    levels = (
        JointProgramme((party,), programme.b, programme.p).compute_level(np.array([i]))
        for i in range(programme.m)
    )
    return sum(level > 0 for level in levels)


def choose_most_pruned(shares: Floats, loss: float) -> Ints:
    """Return the largest set of coefficients that costs no record more than ``loss`` (problem 1).

    ``shares`` are those of every record, (n, m). Constraints of records enter the programme when a
    solution breaks them, so that few of them are ever solved for.
    """
    upper = min(shares.shape[1] - 1, count_within_budget(shares.min(axis=0), loss))
    for K in range(upper, 0, -1):
        pruned, worst = choose_least_loss(shares, K)
        if worst <= loss:
            return pruned
    return np.empty(0, dtype=np.int64)


def choose_least_loss(shares: Floats, K: int, time_limit: float = TIME_LIMIT) -> tuple[Ints, float]:
    """Return the ``K`` coefficients whose loss for the worst record is smallest, and that loss."""
    used = [int(np.argmax(shares.max(axis=1)))]
    gain = np.append(np.zeros(shares.shape[1]), 1.0)
    while True:
        rows = np.column_stack([shares[used], np.ones(len(used))])
        chosen = solve(gain, rows, np.ones(len(used)), K, time_limit)
        pruned = np.flatnonzero(chosen)
        losses = shares[:, pruned].sum(axis=1)
        worst = int(np.argmax(losses))
        if losses[worst] <= losses[used].max() + SHARE_STEP / 2:
            return pruned, float(losses[worst])
        used.append(worst)
