"""Linkage costs between persons and released rows, and the choice of one row for each person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.attacks._noise_likelihood_ratio import compute_tile_density, pairwise_log_density
from ppdm_core.attacks._row_density import log_normal
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import SUREST_SHARES, AttackerView
from ppdm_core.numerics.distances import (
    compute_squared_distances,
    row_slices,
    squared_distances,
)
from ppdm_core.numerics.linear_map import (
    compute_components,
    get_centre_and_loadings,
    has_map,
    has_noise,
)
from ppdm_core.numerics.neighbours import (
    TILE_PERSONS,
    TILE_ROWS,
    WIDE_ROWS,
    SmallestCosts,
    find_nearest_rows,
    find_smallest,
    search_tiles,
)
from ppdm_core.numerics.noise_distributions import SAMPLED_DISTRIBUTIONS, NoiseDistribution

MAX_EXACT_ROWS = 5_000  # the full cost matrix and its solver do not scale beyond
_CANDIDATES_PER_PERSON = 20  # rows for each person, in larger tables
_MAX_COST = 1e6  # an infinite cost could leave the solver without a solution
_MIN_RELATIVE_COST = 1e-12  # of the largest; smaller costs are rounding errors
_MIN_SUREST_PERSONS = 5
_MIN_LOADING = 1e-12  # smaller loadings count as 0
_NORMAL_WEIGHT = 0.1  # weight of a normal distribution in the mixture behind a row


class Costs(Protocol):
    """Minus log likelihood, or a distance, of each person with each row."""

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield (persons, their costs with every row), a few persons at a time."""
        ...

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        """Return the k cheapest rows of each person, cheapest first, and their costs; (t, k)."""
        ...

    def select(self, persons: Ints, rows: Ints) -> Costs: ...

    def compare(self, cheapest: Floats, second: Floats) -> Floats:
        """Return how much surer the cheapest row is than the second one, as log odds."""
        ...

    @property
    def shape(self) -> tuple[int, int]: ...


@dataclass(frozen=True, eq=False)
class DistanceCosts:
    """Squared distances between persons and rows."""

    persons: Floats  # (t, q)
    rows: Floats  # (m, q)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.persons), len(self.rows)

    def select(self, persons: Ints, rows: Ints) -> DistanceCosts:
        return DistanceCosts(self.persons[persons], self.rows[rows])

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        return squared_distances(self.persons, self.rows)

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        return find_nearest_rows(self.persons, self.rows, k)

    def compare(self, cheapest: Floats, second: Floats) -> Floats:
        """Return the log of the ratio: the unit of the distances may be unknown."""
        least = _MIN_RELATIVE_COST * second.max(initial=0.0) + np.finfo(np.float64).tiny
        return np.asarray(np.log((second + least) / (cheapest + least)))


@dataclass(frozen=True, eq=False)
class LikelihoodCosts:
    """Minus log likelihood by the distributions of the noise and of the responses."""

    distribution: NoiseDistribution | None  # None: responses only
    persons: Floats  # (t, s) in units of the noise scales
    rows: Floats  # (m, s) in units of the noise scales
    responses: DistanceCosts
    offset: Floats  # (m,) added for each row

    @property
    def shape(self) -> tuple[int, int]:
        return self.responses.shape

    def select(self, persons: Ints, rows: Ints) -> LikelihoodCosts:
        return replace(
            self,
            persons=self.persons[persons],
            rows=self.rows[rows],
            responses=self.responses.select(persons, rows),
            offset=self.offset[rows],
        )

    def iterate_blocks(self) -> Iterator[tuple[slice, Floats]]:
        t, m = self.shape
        for part in row_slices(t, 3 * m):
            C = np.tile(self.offset, (len(self.persons[part]), 1))
            if self.responses.rows.shape[1]:
                ((_, D),) = squared_distances(self.responses.persons[part], self.responses.rows)
                C += D
            if self.distribution is not None:
                C -= pairwise_log_density(self.distribution, self.persons[part], self.rows)
            yield part, np.minimum(C, _MAX_COST, out=C)

    def find_cheapest(self, k: int) -> tuple[Ints, Floats]:
        t, m = self.shape
        k = min(k, m)
        if m > WIDE_ROWS:
            found = search_tiles(t, m, k, self.compute_tile)
            return found.place, found.cost
        place, cost = np.empty((t, k), dtype=np.int64), np.empty((t, k))
        for part, C in self.iterate_blocks():
            place[part], cost[part] = find_smallest(C, k)
        return place, cost

    def compute_tile(self, persons: slice, rows: slice) -> Floats:
        """Return the costs of some persons with some rows."""
        C = np.tile(self.offset[rows], (persons.stop - persons.start, 1))
        if self.responses.rows.shape[1]:
            C += compute_squared_distances(
                self.responses.persons[persons], self.responses.rows[rows]
            )
        if self.distribution is not None:
            C -= compute_tile_density(self.distribution, self.persons[persons], self.rows[rows])
        return np.minimum(C, _MAX_COST, out=C)

    def compare(self, cheapest: Floats, second: Floats) -> Floats:
        return second - cheapest

    def compute_odds(self, log_response_probability: float = 0.0) -> LikelihoodCosts:
        """Return costs relative to how likely each row is for all persons together.

        A mixture of the persons and a background explains a row. The background is a normal
        distribution for the numbers and one probability for all responses.
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
        persons = top + np.log(total) + np.log((1.0 - _NORMAL_WEIGHT) / t)
        return replace(self, offset=np.logaddexp(persons, plain) + self.offset)


@dataclass(frozen=True, eq=False)
class CostsWithOdds:
    """Costs by a likelihood and relative to all persons, both from one pass over all pairs.

    It is what ``compute_odds`` gives, for blocks of a table that is too large to be compared three
    times.
    """

    surprise: LikelihoodCosts
    log_response_probability: float
    labels: Codes | None  # (t,) of the persons, each compared with rows of its own label; None: all
    basis: tuple[Floats, Codes] | None  # rows that the background is fitted to, and their labels

    def find_both(self, who: Ints, where: Ints, k: int) -> tuple[SmallestCosts, SmallestCosts]:
        """Return the cheapest rows of some persons among some rows, by either cost."""
        chosen = self.surprise.select(who, where)
        (t, m), plain = chosen.shape, self._log_background(chosen, int(who[0]))
        found = SmallestCosts(t, min(k, m)), SmallestCosts(t, min(k, m))
        for start in range(0, m, TILE_ROWS):
            rows, total, top = slice(start, min(start + TILE_ROWS, m)), 0.0, -np.inf
            tiles = [
                (part, chosen.compute_tile(part, rows))
                for part in (slice(i, min(i + TILE_PERSONS, t)) for i in range(0, t, TILE_PERSONS))
            ]
            top = np.max([(-C).max(axis=0) for _, C in tiles], axis=0)
            total = np.sum(
                [np.exp((-C - top).astype(np.float32)).sum(axis=0) for _, C in tiles], axis=0
            )
            persons = top + np.log(total) + np.log((1.0 - _NORMAL_WEIGHT) / t)
            extra = np.logaddexp(persons, plain[rows])
            for part, C in tiles:
                found[0].add(part, start, C)
                found[1].add(part, start, np.minimum(C + extra, _MAX_COST))
        for each in found:
            each.merge()
        return found

    def _log_background(self, chosen: LikelihoodCosts, person: int) -> Floats:
        basis = None
        if self.basis is not None and chosen.rows.shape[1]:
            basis, labels = self.basis
            if self.labels is not None:
                basis = basis[labels == self.labels[person]]
        basis = None if basis is None or not len(basis) else basis
        weight = self.log_response_probability + float(np.log(_NORMAL_WEIGHT))
        return log_normal(chosen.rows, basis) + weight


@dataclass(frozen=True, eq=False)
class Links:
    """One row for each person, -1 for none."""

    nearest: Ints  # (t,) the cheapest row
    one_to_one: Ints  # (t,) by the assignment of least total cost, which uses each row once
    margin: Floats  # (t,) how sure the cheapest row is against the second one


def link_rows(costs: Costs) -> Links:
    """Return the cheapest row of each person, and the assignment of least total cost."""
    if costs.shape[1] > MAX_EXACT_ROWS:
        place, cost = costs.find_cheapest(_CANDIDATES_PER_PERSON)
        one_to_one = _solve_sparse_assignment(place, cost, costs.shape[1])
        return Links(
            place[:, 0].copy(),
            one_to_one,
            costs.compare(cost[:, 0], cost[:, min(1, cost.shape[1] - 1)]),
        )
    C = np.empty(costs.shape)
    for part, block in costs.iterate_blocks():
        C[part] = block
    least = np.partition(C, min(1, C.shape[1] - 1), axis=1)[:, :2]
    return Links(C.argmin(axis=1), _solve_assignment(C), costs.compare(least[:, 0], least[:, -1]))


def _solve_assignment(C: Floats) -> Ints:
    """Return the exact assignment of least total cost; -1 for persons without a row."""
    from scipy.optimize import linear_sum_assignment

    link = np.full(len(C), -1, dtype=np.int64)
    found, place = linear_sum_assignment(C)
    link[found] = place
    return link


def _solve_sparse_assignment(place: Ints, cost: Floats, m: int) -> Ints:
    """Return the assignment of least total cost among the best rows of each person.

    A person may also get no row (-1). That costs as much more than the last of these rows as the
    last costs more than the first.
    """
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


def link_within_labels(costs: Costs, persons: Codes, rows: Codes) -> Links:
    """Return the same as ``link_rows``, with rows of a person's own label only.

    A person whose label no row has gets -1.
    """
    found = np.full((2, len(persons)), -1, dtype=np.int64)
    margin = np.zeros(len(persons))
    for who, where in split_by_label(persons, rows, within_labels=True):
        links = link_rows(costs.select(who, where))
        place = np.stack([links.nearest, links.one_to_one])
        found[:, who] = np.where(place >= 0, where[place], -1)
        margin[who] = links.margin
    return Links(found[0], found[1], margin)


def find_nearest_within_labels(costs: Costs, persons: Codes, rows: Codes) -> tuple[Ints, Floats]:
    """Return the cheapest row with the label of each person, -1 for none, and its margin."""
    found, margin = np.full(len(persons), -1, dtype=np.int64), np.zeros(len(persons))
    for who, where in split_by_label(persons, rows, within_labels=True):
        mine = costs.select(who, where)
        place, cost = mine.find_cheapest(2)
        found[who], margin[who] = where[place[:, 0]], mine.compare(cost[:, 0], cost[:, -1])
    return found, margin


Found = tuple[str, Links]  # by the name of the costs
CostsOfView = Callable[[AttackerView], Iterable[tuple[str, Costs | CostsWithOdds]]]


def search_rows(
    view: AttackerView, list_costs: CostsOfView, *, within_labels: bool = True
) -> list[Found]:
    """Return the links by each of the costs, with rows of the person's own label or with all.

    Further rows of a large release are searched block by block; the cheapest rows of all blocks
    are merged, and costs must be comparable between them.
    """
    assert view.targets is not None
    if view.further is None:
        found = []
        for name, costs in list_costs(view):
            assert not isinstance(costs, CostsWithOdds)  # these are for blocks
            if within_labels:
                links = link_within_labels(costs, view.targets.label, view.label)
            else:
                links = link_rows(costs)
            found.append((name, links))
        return found
    merged: dict[str, CheapestRows] = {}
    for start, part in view.iterate_parts():
        for name, costs in list_costs(part):
            groups = split_by_label(view.targets.label, part.label, within_labels=within_labels)
            for who, where in groups:
                for each, kind, place, cost in _search_block(name, costs, who, where):
                    cheapest = merged.setdefault(each, CheapestRows(kind, view.targets.n))
                    cheapest.add(who, start + where[place], cost)
    groups = split_by_label(view.targets.label, view.targets.label, within_labels=within_labels)
    everyone = [who for who, _ in groups]
    m = len(view.Y) + view.further.n
    return [(name, each.link(everyone, m)) for name, each in merged.items()]


def _search_block(
    name: str, costs: Costs | CostsWithOdds, who: Ints, where: Ints
) -> Iterator[tuple[str, Costs, Ints, Floats]]:
    """Yield the cheapest rows of some persons among some rows, by each kind of cost."""
    if isinstance(costs, CostsWithOdds):
        found = costs.find_both(who, where, _CANDIDATES_PER_PERSON)
        for each, cheapest in zip((name, "odds"), found, strict=True):
            yield each, costs.surprise, cheapest.place, cheapest.cost
        return
    yield name, costs, *costs.select(who, where).find_cheapest(_CANDIDATES_PER_PERSON)


def search_nearest(
    view: AttackerView, list_costs: CostsOfView, *, within_labels: bool = True
) -> Iterator[tuple[str, Ints, Floats]]:
    """Yield the cheapest row of each person by each of the costs, and its margin.

    Margins are known within labels only.
    """
    assert view.targets is not None
    if view.further is not None:
        for name, links in search_rows(view, list_costs, within_labels=within_labels):
            yield name, links.nearest, links.margin
        return
    for name, costs in list_costs(view):
        assert not isinstance(costs, CostsWithOdds)  # these are for blocks
        if within_labels:
            yield name, *find_nearest_within_labels(costs, view.targets.label, view.label)
        else:
            yield name, costs.find_cheapest(1)[0][:, 0], np.zeros(view.targets.n)


def split_by_label(
    persons: Codes, rows: Codes, *, within_labels: bool
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the persons and the rows of each label of a person that a row has, or all at once."""
    if not within_labels:
        yield np.arange(len(persons)), np.arange(len(rows))
        return
    for code in np.unique(persons).tolist():
        who, where = np.flatnonzero(persons == code), np.flatnonzero(rows == code)
        if len(where):
            yield who, where


class CheapestRows:
    """The cheapest rows of each person among all blocks that were searched."""

    def __init__(self, costs: Costs, persons: int) -> None:
        self.costs = costs
        self.place = np.full((persons, _CANDIDATES_PER_PERSON), -1, dtype=np.int64)
        self.cost = np.full((persons, _CANDIDATES_PER_PERSON), np.inf)

    def add(self, who: Ints, place: Ints, cost: Floats) -> None:
        """Merge the cheapest rows of some persons in a further block."""
        place, cost = np.hstack([self.place[who], place]), np.hstack([self.cost[who], cost])
        keep = np.argsort(cost, axis=1, kind="stable")[:, :_CANDIDATES_PER_PERSON]
        self.place[who] = np.take_along_axis(place, keep, axis=1)
        self.cost[who] = np.take_along_axis(cost, keep, axis=1)

    def link(self, groups: Sequence[Ints], m: int) -> Links:
        """Return the links; each group of persons shares its rows, ``m`` in all."""
        one_to_one = np.full(len(self.place), -1, dtype=np.int64)
        margin = np.zeros(len(self.place))
        for who in groups:
            found = int((self.place[who] >= 0).sum(axis=1).min(initial=_CANDIDATES_PER_PERSON))
            if found and len(who):
                place, cost = self.place[who, :found], self.cost[who, :found]
                used, column = np.unique(place, return_inverse=True)
                link = _solve_sparse_assignment(column.reshape(place.shape), cost, len(used))
                one_to_one[who] = np.where(link >= 0, used[link], -1)
                margin[who] = self.costs.compare(cost[:, 0], cost[:, min(1, found - 1)])
        return Links(self.place[:, 0].copy(), one_to_one, margin)


def select_surest(found: Sequence[tuple[Ints, Floats]]) -> dict[str, dict[str, Ints]]:
    """Return the scenarios of the persons with the largest margins; -1 for the others.

    Each person takes the link with the largest margin, of all that are given with their margins.
    """
    margins = np.stack([margin for _, margin in found])
    best = margins.argmax(axis=0)[None]
    link = np.take_along_axis(np.stack([links for links, _ in found]), best, axis=0)[0]
    margin = np.where(link >= 0, np.take_along_axis(margins, best, axis=0)[0], -np.inf)
    order = np.argsort(-margin, kind="stable")
    scenarios = {}
    for name, share in SUREST_SHARES.items():
        surest = order[: max(_MIN_SUREST_PERSONS, round(share * len(link)))]
        chosen = np.full(len(link), -1, dtype=np.int64)
        chosen[surest] = link[surest]
        scenarios[name] = {name: chosen}
    return scenarios


def has_noise_distribution(view: AttackerView) -> bool:
    """Return whether the map and a supported distribution of the noise are public."""
    return (
        has_map(view.public) and has_noise(view.public) and view.public.law in SAMPLED_DISTRIBUTIONS
    )


def find_pure_component_costs(
    view: AttackerView, X: Floats, columns: Ints
) -> LikelihoodCosts | None:
    """Return costs by the components that depend on these columns alone; None without any."""
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
    Z = scale_components(view)[:, pure]
    nothing = DistanceCosts(np.zeros((len(T), 0)), np.zeros((len(Z), 0)))
    return LikelihoodCosts(noise.distribution, T, Z, nothing, np.zeros(len(Z)))


def scale_components(view: AttackerView) -> Floats:
    """Return the noisy components of the rows in units of the noise scales."""
    return compute_components(view) / read_noise(view.public).scales


def clamp_components(view: AttackerView, T: Floats, components: Ints) -> Floats:
    """Clip the components to the ranges that the release publishes."""
    ranges = view.public.ranges
    if ranges is None:
        return T
    return np.clip(T, ranges[components, 0], ranges[components, 1])
