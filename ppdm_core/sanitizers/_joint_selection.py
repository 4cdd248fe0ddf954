"""The choice of cosine coefficients when every party holds other columns of the same persons.

Each party knows the energy bounds of its own columns alone, with zeros in place of all others. The
coefficients to prune must suit every party, so that the choice is an integer programme with
constraints of each (DCT-F, section 3.4).

For a fixed number of pruned coefficients and a level, the constraints of all parties are linear: a
set that keeps them at that level reaches a ``mu_C`` of at least this level at every party. So the
level of the best set so far is raised until no set is left. The search is exact: a set that the
solver finds only by its tolerance is excluded, and another one is looked for. A search that is not
proven to be complete in time is refused.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers._fuzzy_selection import (
    SHARE_STEP,
    PruningChoice,
    count_membership,
    count_within_budget,
)

TIME_LIMIT = 60.0  # seconds for all programmes of one choice
LEVEL_STEP = 1e-9  # levels that differ by less count as equal
INFEASIBLE = 2  # status of the solver


@dataclass(frozen=True, eq=False)
class PartyBounds:
    """The energy bounds of one party's columns."""

    name: str
    low: Floats  # (m,)
    spread: Floats  # (m,)


class Deadline:
    """The end of the time that all programmes of one choice have together."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.start = seconds, time.monotonic()

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.start + self.seconds - time.monotonic())

    def refuse(self, gap: float | None) -> BadInput:
        """Return the error of a choice that was not proven in time."""
        known = "unknown" if gap is None else f"{gap:.1%}"
        return BadInput(
            f"No best choice of coefficients was proven within {self.seconds:g} s (gap: {known}).",
            remedy="Release fewer columns, or change b and p.",
        )


@dataclass(frozen=True, eq=False)
class JointProgramme:
    """The bounds of all parties, and the losses that each of them accepts."""

    parties: Sequence[PartyBounds]
    b: float
    p: float
    deadline: Deadline = field(default_factory=lambda: Deadline(TIME_LIMIT))

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

    def list_possible(self) -> Bools:
        """Return which coefficients can be pruned, each on its own, at a level above 0; (m,)."""
        levels = [self.compute_level(np.array([i])) for i in range(self.m)]
        return np.array(levels) > 0

    def find_better(self, K: int, level: float, *, or_equal: bool = False) -> Ints | None:
        """Return ``K`` coefficients with a larger mu_C than a level, None if there are none."""
        price = level if or_equal else level + LEVEL_STEP
        rows = self.low + price * self.spread
        budget = np.full(len(rows), self.b + self.p * (1 - price))

        def is_better(pruned: Ints) -> bool:
            reached = self.compute_level(pruned)
            return reached >= level if or_equal else reached > level

        return find_set(rows, budget, K, is_better, self.deadline)

    def find_best(self, K: int, start: float) -> tuple[Ints, float] | None:
        """Return the best ``K`` coefficients and their mu_C; None if it is below ``start``."""
        pruned = self.find_better(K, start, or_equal=True)
        if pruned is None:
            return None
        level = self.compute_level(pruned)
        while level < 1.0 and (better := self.find_better(K, level)) is not None:
            pruned, level = better, self.compute_level(better)
        return pruned, level

    def count_most(self, shares: Floats, budget: float) -> int:
        """Return the largest number of coefficients whose shares fit every party's budget."""
        upper = min(count_within_budget(each, budget) for each in shares)
        limits = np.full(len(shares), budget)

        def fits(pruned: Ints) -> bool:
            return bool((shares[:, pruned].sum(axis=1) <= budget).all())

        sizes = range(upper, 0, -1)
        found = (find_set(shares, limits, K, fits, self.deadline) is not None for K in sizes)
        return next((K for K, is_found in zip(sizes, found, strict=True) if is_found), 0)


def find_set(
    rows: Floats,
    budget: Floats,
    K: int,
    accept: Callable[[Ints], bool],
    deadline: Deadline,
) -> Ints | None:
    """Return ``K`` places whose sums in all rows keep the budget, None if there are none.

    ``accept`` decides about a set in exact numbers; one that it does not accept is excluded.
    Raise BadInput if the search does not end in time, which all searches of a choice share.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    m = rows.shape[1]
    constraints = [LinearConstraint(rows, -np.inf, budget), LinearConstraint(np.ones(m), K, K)]
    while True:
        left = deadline.left
        if left <= 0:
            raise deadline.refuse(None)
        found = milp(
            rows.sum(axis=0),
            integrality=np.ones(m),
            bounds=Bounds(0.0, 1.0),
            constraints=constraints,
            options={"time_limit": left},
        )
        if found.status == INFEASIBLE:
            return None
        if found.status != 0 or found.x is None:
            raise deadline.refuse(found.mip_gap)
        chosen = np.flatnonzero(np.rint(found.x))
        if accept(chosen):
            return chosen
        excluded = np.zeros(m)
        excluded[chosen] = 1.0
        constraints.append(LinearConstraint(excluded, -np.inf, K - 1))


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
        found = programme.find_best(K, loss_level)
        if found is None:  # no set of this size reaches what a larger one does
            continue
        pruned, loss_level = found
        level = min(count_level, loss_level)
        if best is None or level > best.level:
            best = PruningChoice(pruned, loss_level, level)
    assert best is not None
    if best.loss_level == 0.0 or not len(best.pruned):
        raise describe_infeasible(programme)
    return best


def describe_infeasible(programme: JointProgramme) -> BadInput:
    """Return the error of constraints that allow no coefficient to be pruned, with their names."""
    who = [party.name for party in find_conflict(programme)]
    names = " and ".join(map(repr, who))
    because = (
        f"the constraint of {names} alone excludes each of them"
        if len(who) == 1
        else f"the constraints of {names} exclude them together"
    )
    return BadInput(
        f"With b = {programme.b:g} and p = {programme.p:g} no coefficient can be pruned: "
        f"{because}.",
        remedy="Raise b or p in [sanitizer], for all parties.",
    )


def find_conflict(programme: JointProgramme) -> Sequence[PartyBounds]:
    """Return the fewest parties whose constraints together allow no coefficient to be pruned.

    A set of coefficients that suits them has subsets of one coefficient that do, so that single
    coefficients decide: each must be excluded by a party of the conflict.
    """
    alone = [replace(programme, parties=[party]).list_possible() for party in programme.parties]
    for count in range(1, len(alone) + 1):
        for some in itertools.combinations(range(len(alone)), count):
            if not np.logical_and.reduce([alone[t] for t in some]).any():
                return [programme.parties[t] for t in some]
    return programme.parties  # only just: a larger set meets a budget exactly, at level 0


def choose_most_pruned(shares: Floats, loss: float) -> Ints:
    """Return the largest set of coefficients that costs no record more than ``loss`` (problem 1).

    ``shares`` are those of every record, (n, m). Constraints of records enter the programme when a
    solution breaks them, so that few of them are ever solved for.
    """
    upper = min(shares.shape[1] - 1, count_within_budget(shares.min(axis=0), loss))
    deadline = Deadline(TIME_LIMIT)
    for K in range(upper, 0, -1):
        pruned, worst = choose_least_loss(shares, K, deadline)
        if worst <= loss:
            return pruned
    return np.empty(0, dtype=np.int64)


def choose_least_loss(
    shares: Floats, K: int, deadline: Deadline | None = None
) -> tuple[Ints, float]:
    """Return the ``K`` coefficients whose loss for the worst record is smallest, and that loss."""
    deadline = deadline or Deadline(TIME_LIMIT)
    pruned = np.argsort(shares.max(axis=0), kind="stable")[:K]
    loss = float(shares[:, pruned].sum(axis=1).max())
    used = [int(np.argmax(shares[:, pruned].sum(axis=1)))]

    def is_better(candidate: Ints) -> bool:
        losses = shares[:, candidate].sum(axis=1)
        worst = int(np.argmax(losses))
        if losses[worst] < loss:
            return True
        if worst not in used:
            used.append(worst)
            raise BrokenRow
        return False

    while True:
        budget = np.full(len(used), loss - SHARE_STEP / 2)
        try:
            better = find_set(shares[used], budget, K, is_better, deadline)
        except BrokenRow:  # the next programme has its constraint, too
            continue
        if better is None:
            return np.sort(pruned), loss
        pruned, loss = better, float(shares[:, better].sum(axis=1).max())


class BrokenRow(Exception):
    """A solution breaks the constraint of a record that is not in the programme yet."""
