"""Three ways to find which released column is which of the attacker's columns.

An order names for each of the ``s`` released columns one of the ``d`` own ones, no two the same.
``F`` is the attacker's table (original columns, or their public transform).
"""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.policy import Effort
from ppdm_core.numerics.distances import row_slices, squared_distances

_QUANTILES = 256
_SEARCHED_RECORDS = {"quick": 3, "standard": 10, "thorough": 40}
_ROWS_PER_RECORD = 5  # most similar rows tried for each record
_MAX_MOVES = 400
_MOVES_PER_STEP = 12  # evaluated exactly before the search ends
_LEAST_SPREAD = 1e-100  # of columns that are all constant; to divide by it does not overflow
_TINY = np.finfo(np.float64).tiny


def assign_columns(cost: Floats) -> Ints:
    """Return the order of least total cost, (d, s) -> (s,)."""
    from scipy.optimize import linear_sum_assignment

    own, column = linear_sum_assignment(cost)
    order = np.empty(cost.shape[1], dtype=np.int64)
    order[column] = own
    return order


def match_by_value(F: Floats, Y: Floats, prior: Floats) -> Ints:
    """Return the order under which the values of records and of their rows are nearest.

    ``prior`` decides between columns that the records do not distinguish.
    """
    cost = np.mean((F[:, :, None] - Y[:, None, :]) ** 2, axis=0)  # (d, s)
    unit = max(float(np.mean(Y**2)), _TINY)
    return assign_columns(cost / unit + 1e-9 * prior / max(float(prior.max()), 1.0))


def match_by_search(F: Floats, Y: Floats, prior: Floats, effort: Effort) -> tuple[Ints, float]:
    """Return an order from records whose rows are not known, and how well it fits.

    A row that holds some of the values of a record gives an order, and the right order also puts
    the other records onto rows. The fit is the median distance of the records to their nearest
    rows, relative to the spread.
    """
    looked_for = F[: _SEARCHED_RECORDS[effort]]
    orders: dict[tuple[int, ...], Ints] = {}
    for record in looked_for:
        for row in _find_similar_rows(record, Y):
            order = match_by_value(record[None], Y[row : row + 1], prior)
            orders.setdefault(tuple(order.tolist()), order)
    scored = [(_measure_misplacement(F, Y, order)[0], order) for order in orders.values()]
    _, order = min(scored, key=lambda one: one[0])
    _, nearest, distance = _measure_misplacement(F, Y, order)
    close = distance <= 2.0 * np.median(distance) + _TINY
    order = match_by_value(F[close], Y[nearest[close]], prior)
    return order, _measure_misplacement(F, Y, order)[0]


def _find_similar_rows(record: Floats, Y: Floats) -> Ints:
    """Return the rows whose values are nearest to values of the record, in any column order."""
    own = np.sort(record)
    middle = (own[1:] + own[:-1]) / 2.0
    cost = np.empty(len(Y))
    for part in row_slices(len(Y), 4 * Y.shape[1]):
        if Y.shape[1] == len(own):
            gap = np.sort(Y[part], axis=1) - own
        else:
            gap = Y[part] - own[np.searchsorted(middle, Y[part])]
        cost[part] = np.einsum("ij,ij->i", gap, gap)
    return np.argsort(cost, kind="stable")[:_ROWS_PER_RECORD]


def _measure_misplacement(F: Floats, Y: Floats, order: Ints) -> tuple[float, Ints, Floats]:
    """Return the median distance of records to their nearest rows, the rows and all distances."""
    nearest, least = np.empty(len(F), dtype=np.int64), np.empty(len(F))
    for part, D in squared_distances(F[:, order], Y):
        nearest[part] = D.argmin(axis=1)
        least[part] = D.min(axis=1)
    spread = max(float(Y.var(axis=0).sum()), _TINY)
    distance = np.sqrt(least / spread)
    return float(np.median(distance)), nearest, distance


def transport_costs(F: Floats, Y: Floats) -> Floats:
    """Return how badly the distribution of each released column fits that of each own one; (d, s).

    Squared Wasserstein distance in one dimension (a mean over quantiles), by the spread of both.
    """
    at = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    A, B = np.quantile(F, at, axis=0), np.quantile(Y, at, axis=0)
    moved = np.maximum(
        _mean_squares(A)[:, None] - 2.0 * A.T @ B / _QUANTILES + _mean_squares(B), 0.0
    )
    spread = (A.var(axis=0)[:, None] + B.var(axis=0)) / 2.0
    flat = 1e-12 * float(spread.max()) + _LEAST_SPREAD
    return np.asarray(np.log1p(moved / (spread + flat)))


def match_by_distribution(F: Floats, Y: Floats, cost: Floats) -> Ints:
    """Return the order that fits a sample best: by column distributions, then by correlations.

    The order of least transport is improved by single moves (another own column, or two columns
    exchanged) while the correlations fit better than the distributions fit worse.
    """
    order = assign_columns(cost)
    own, released = _correlations(F), _correlations(Y)

    def total(order: Ints) -> float:
        difference = own[np.ix_(order, order)] - released
        return float(cost[order, np.arange(len(order))].sum() + np.sum(difference**2) / 2.0)

    value = total(order)
    for _ in range(_MAX_MOVES):
        found = _propose_moves(order, own, released, cost)
        better = next(((t, new) for new in found if (t := total(new)) < value - 1e-12), None)
        if better is None:
            break
        value, order = better
    return order


def _propose_moves(order: Ints, own: Floats, released: Floats, cost: Floats) -> list[Ints]:
    """Return the most promising moves, by the change of the total if nothing else changed."""
    d, s = cost.shape
    columns = np.arange(s)
    correlations = own[:, order]  # (d, s)
    G = cost + (
        np.sum(correlations**2, axis=1)[:, None]
        - 2.0 * correlations @ released
        + np.sum(released**2, axis=1)
    )  # own column c in the place of released column j
    change = G - G[order, columns]  # (d, s)
    holder = np.full(d, -1)
    holder[order] = columns
    taken = np.flatnonzero(holder >= 0)
    # An exchange moves the other column too.
    change[taken] += G[order][:, holder[taken]].T - G[taken, holder[taken]][:, None]
    change[order, columns] = np.inf
    found = []
    for place in np.argsort(change, axis=None, kind="stable")[:_MOVES_PER_STEP]:
        c, j = divmod(int(place), s)
        new = order.copy()
        if holder[c] >= 0:
            new[holder[c]] = order[j]
        new[j] = c
        found.append(new)
    return found


def _mean_squares(A: Floats) -> Floats:
    """Return the mean square of each column."""
    return np.asarray(np.mean(A**2, axis=0))


def _correlations(F: Floats) -> Floats:
    """Return the correlation matrix of the columns; 0 for a constant column."""
    centred = F - F.mean(axis=0)
    scale = np.sqrt(np.mean(centred**2, axis=0))
    unit = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 1e-12)
    R: Floats = unit.T @ unit / len(F)
    return R
