"""From costs of each row for each person to one row for each person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ppdm_core.attacks._neighbour_search import find_nearest_rows, find_smallest
from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.attacks._noise_likelihood_ratio import pairwise_log_density
from ppdm_core.attacks._row_density import log_normal
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import AttackerView
from ppdm_core.numerics.distances import row_slices, squared_distances
from ppdm_core.numerics.distributions import SAMPLED_DISTRIBUTIONS, SampledDistribution
from ppdm_core.numerics.linear_map import (
    compute_components,
    get_centre_and_loadings,
    has_map,
    has_noise,
)

MAX_EXACT_ROWS = 5_000  # the full cost matrix and its solver do not scale beyond
_CANDIDATES_PER_PERSON = 20  # rows for each person, in larger tables
_MAX_COST = 1e6  # cost; infinite ones would leave a solver without any answer
_MIN_LOADING = 1e-12  # loadings below are none
_NORMAL_WEIGHT = 0.1  # weight of a normal law among the explanations of a row


class Costs(Protocol):
    """Minus log likelihood, or a distance, of people and rows."""

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        """(people, their costs with every row), a few people at a time."""
        ...

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        """(t, k) the cheapest rows of each, cheapest first, and their costs."""
        ...

    def select(self, people: Ints, rows: Ints) -> Costs: ...

    @property
    def shape(self) -> tuple[int, int]: ...


@dataclass(frozen=True, eq=False)
class DistanceCosts:
    """Squared distances."""

    people: Floats  # (t, q)
    rows: Floats  # (m, q)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.people), len(self.rows)

    def select(self, people: Ints, rows: Ints) -> DistanceCosts:
        return DistanceCosts(self.people[people], self.rows[rows])

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        return squared_distances(self.people, self.rows)

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        return find_nearest_rows(self.people, self.rows, k)


@dataclass(frozen=True, eq=False)
class LikelihoodCosts:
    """By the law of the noise, in units of its scales, and that of the answers."""

    law: SampledDistribution | None  # None: there are answers only
    people: Floats  # (t, s)
    rows: Floats  # (m, s)
    responses: DistanceCosts
    offset: Floats  # (m,) added for each row

    @property
    def shape(self) -> tuple[int, int]:
        return self.responses.shape

    def select(self, people: Ints, rows: Ints) -> LikelihoodCosts:
        return replace(
            self,
            people=self.people[people],
            rows=self.rows[rows],
            responses=self.responses.select(people, rows),
            offset=self.offset[rows],
        )

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        t, m = self.shape
        for part in row_slices(t, 3 * m):
            C = np.tile(self.offset, (len(self.people[part]), 1))
            if self.responses.rows.shape[1]:
                ((_, D),) = squared_distances(self.responses.people[part], self.responses.rows)
                C += D
            if self.law is not None:
                C -= pairwise_log_density(self.law, self.people[part], self.rows)
            yield part, np.minimum(C, _MAX_COST, out=C)

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        t, m = self.shape
        k = min(k, m)
        place, cost = np.empty((t, k), dtype=np.int64), np.empty((t, k))
        for part, C in self.iterate_blocks():
            place[part], cost[part] = find_smallest(C, k)
        return place, cost

    def compute_odds(self, log_response_probability: float = 0.0) -> LikelihoodCosts:
        """Against what all people make of a row, or a plain law: a normal one for the numbers,
        one probability for all answers.
        """
        t, m = self.shape
        top = np.full(m, -np.inf)
        total = np.zeros(m)
        for _, C in self.iterate_blocks():
            here = (-C).max(axis=0)
            new = np.maximum(top, here)
            total *= np.exp(np.where(np.isfinite(top), top - new, -np.inf))
            total += np.exp(-C - new).sum(axis=0)
            top = new
        plain = log_normal(self.rows) + log_response_probability + np.log(_NORMAL_WEIGHT)
        people = top + np.log(total) + np.log((1.0 - _NORMAL_WEIGHT) / t)
        return replace(self, offset=np.logaddexp(people, plain) + self.offset)


def link_rows(costs: Costs) -> tuple[Ints, Ints]:
    """The cheapest row of each person; and the assignment of least total cost, each row used once,
    where those who are left over get no answer (-1)."""
    if costs.shape[1] > MAX_EXACT_ROWS:
        place, cost = costs.find_cheapest(_CANDIDATES_PER_PERSON)
        return place[:, 0].copy(), _solve_sparse_assignment(place, cost, costs.shape[1])
    C = np.empty(costs.shape)
    for part, block in costs.iterate_blocks():
        C[part] = block
    return C.argmin(axis=1), _solve_assignment(C)


def _solve_assignment(C: Floats) -> Ints:
    from scipy.optimize import linear_sum_assignment

    link = np.full(len(C), -1, dtype=np.int64)
    found, place = linear_sum_assignment(C)
    link[found] = place
    return link


def _solve_sparse_assignment(place: Ints, cost: Floats, m: int) -> Ints:
    """Among the best rows of each person, or none, which costs as much more than the last of these
    as that more than the first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    t, k = place.shape
    # Weights of 0 would be taken for no edge; the order is what counts.
    weight = np.column_stack([cost, 2 * cost[:, -1] - cost[:, 0]]) - cost.min() + 1.0
    column = np.column_stack([place, m + np.arange(t)])
    graph = csr_array(
        (weight.ravel(), column.ravel(), np.arange(0, t * (k + 1) + 1, k + 1)), shape=(t, m + t)
    )
    person, found = min_weight_full_bipartite_matching(graph)
    link = np.full(t, -1, dtype=np.int64)
    link[person] = np.where(found < m, found, -1)
    return link


def link_within_labels(costs: Costs, people: Codes, rows: Codes) -> tuple[Ints, Ints]:
    """The same for each label apart; who has a label that no row has gets no answer."""
    found = np.full((2, len(people)), -1, dtype=np.int64)
    for code in np.unique(people).tolist():
        who, where = np.flatnonzero(people == code), np.flatnonzero(rows == code)
        if len(where):
            place = np.stack(link_rows(costs.select(who, where)))
            found[:, who] = np.where(place >= 0, where[place], -1)
    return found[0], found[1]


def find_nearest_within_labels(costs: Costs, people: Codes, rows: Codes) -> Ints:
    found = np.full(len(people), -1, dtype=np.int64)
    for code in np.unique(people).tolist():
        who, where = np.flatnonzero(people == code), np.flatnonzero(rows == code)
        if len(where):
            found[who] = where[costs.select(who, where).find_cheapest(1)[0][:, 0]]
    return found


def has_noise_distribution(view: AttackerView) -> bool:
    return (
        has_map(view.public) and has_noise(view.public) and view.public.law in SAMPLED_DISTRIBUTIONS
    )


def find_pure_component_costs(
    view: AttackerView, X: Floats, columns: Ints
) -> LikelihoodCosts | None:
    """By the components that are made of these columns alone, if there are such."""
    if not has_noise_distribution(view):
        return None
    centre, loadings = get_centre_and_loadings(view.public)
    others = np.setdiff1d(np.arange(len(loadings)), columns)
    pure = np.flatnonzero((np.abs(loadings[others]) <= _MIN_LOADING).all(axis=0))
    if not len(pure):
        return None
    noise = read_noise(view.public)
    T = clamp_components(view, (X - centre[columns]) @ loadings[np.ix_(columns, pure)], pure)
    T = T / noise.scales[pure]
    Z = compute_components(view)[:, pure] / noise.scales[pure]
    nothing = DistanceCosts(np.zeros((len(T), 0)), np.zeros((len(Z), 0)))
    return LikelihoodCosts(noise.law, T, Z, nothing, np.zeros(len(Z)))


def clamp_components(view: AttackerView, T: Floats, components: Ints) -> Floats:
    """Where these components can be at all in the release."""
    ranges = view.public.ranges
    if ranges is None:
        return T
    return np.clip(T, ranges[components, 0], ranges[components, 1])
