from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._chance import ChanceMetric
from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._release import check_rows_of_records
from ppdm_core.model.arrays import Floats

_MAX_ROWS = 2_000  # consecutive ones: the order matters
_MIN_ROWS = 20
_LAGS = 6  # how many rows earlier
_PERIODS = range(2, 11)  # rows in a group whose noise is drawn together
_MIN_GROUPS = 4  # for each row of a group
_SHARE_DEVIATIONS = 4.0  # of a share by chance, which are subtracted from it
_SHIFTS = (-1, 0, 1)  # how many columns further left or right
_SHUFFLES = 10
_ROUNDING = 1e-9  # of a share
_MAX_CATEGORIES = 20  # values of a column of categories, and of its differences
_MAX_DEVIATIONS = 7.0  # of shuffled records beyond their largest share


class PredictableNoise(ChanceMetric):
    """Share of the noise of a row that follows from the noise of the rows before it.

    Noise from a simple recurrence, a curve or a table hides no record: an attacker who knows a few
    records with their rows computes the noise of the rows that follow. The same holds for the last
    row of a group of consecutive rows whose noise cancels. The value is that of the worst column;
    the baseline is what records that do not belong to the rows reach, or what the order of the
    records explains in the same column.
    """

    name = "predictable_noise"
    title = "Noise that follows from earlier rows"
    describe = "share of the noise of a row that follows from an earlier row"
    template = (
        "In the worst column, {value} of the variation of the noise follows from the noise of an "
        "earlier row; for rows and records that do not belong together it is up to {baseline}."
    )
    max_records = _MAX_ROWS
    must_notice: ClassVar[Mapping[str, float]] = {"recurrent noise": 0.85}

    def compare(self, comparison: ReleaseComparison) -> tuple[float, float]:
        check_rows_of_records(self.name, comparison)
        rng = comparison.rng(self.name)
        Y = comparison.Y[:_MAX_ROWS]
        X = comparison.X[comparison.records[:_MAX_ROWS]]
        spread = X.var(axis=0)
        shares = measure_dependence(Y - X, spread)
        shuffled = np.array(
            [measure_dependence(Y - rng.permutation(X), spread) for _ in range(_SHUFFLES)]
        )  # (_SHUFFLES, d)
        # If a column of the records is in an order of its own, so is what was subtracted from it.
        bound = bound_shares(shuffled, measure_dependence(X, spread))
        # What a category that is kept reveals is measured by linkage: it needs no noise.
        is_category = (count_values(X) <= _MAX_CATEGORIES) & (
            count_values(Y - X) <= _MAX_CATEGORIES
        )
        shares = np.where(is_category, 0.0, shares)
        worst = int(np.lexsort((-bound, shares - bound))[-1])
        return float(shares[worst]), float(bound[worst])


def bound_shares(shuffled: Floats, of_records: Floats) -> Floats:
    """Return shares that chance exceeds almost never; (d,).

    Deviations are those of the logarithm of the rest. Wide noise depends on earlier rows as much
    with other records subtracted, nearly completely, and then the rest is what differs.
    """
    rests = np.log(np.maximum(1.0 - np.vstack([shuffled, of_records]), 1e-12))
    deviation = rests[:-1].std(axis=0)  # of few values: that of other columns is as good
    deviation = np.maximum(deviation, np.median(deviation))
    bound: Floats = 1.0 - np.exp(rests.min(axis=0) - _MAX_DEVIATIONS * deviation)
    return np.minimum(1.0, bound + _ROUNDING)


def count_values(A: Floats) -> Floats:
    """Return the number of different values of each column; (d,)."""
    return np.array([len(np.unique(column)) for column in A.T])


def measure_dependence(E: Floats, spread: Floats) -> Floats:
    """Return for each column how well an earlier row determines it: 0 by chance, 1 exactly; (d,).

    The rows are sorted by the earlier value. The closer the later values of neighbours in this
    order are, the better they are determined, whatever the shape of the relation is (the ratio of
    von Neumann, on ranks). The best of several lags and neighbouring columns counts, a linear
    function of several earlier rows, which continues waves, and a linear function of the other
    rows of a group, for groups of several sizes. ``spread`` is the variance of the records.
    """
    n, d = E.shape
    if n < _MIN_ROWS:
        return np.zeros(d)
    ranks = np.column_stack([rank(column) for column in E.T])
    best = np.array([fit_linear_recurrence(column) for column in E.T])
    for period in _PERIODS:
        best = np.maximum(best, fit_groups(E, spread, period))
    for lag in range(1, _LAGS + 1):
        order = np.argsort(E[:-lag], axis=0, kind="stable")  # (n - lag, d)
        for shift in _SHIFTS:
            target = np.arange(d) + shift
            source = np.flatnonzero((target >= 0) & (target < d))
            later = ranks[order[:, source] + lag, target[source]]
            best[target[source]] = np.maximum(best[target[source]], compare_neighbours(later))
    return best


def fit_linear_recurrence(values: Floats) -> float:
    """Return the share of the variance that a linear function of the values before explains."""
    centred = values - values.mean()
    if not centred.any():
        return 1.0
    windows = np.lib.stride_tricks.sliding_window_view(centred / np.abs(centred).max(), _LAGS + 1)
    before, later = windows[:, :-1], windows[:, -1]
    weights = np.linalg.lstsq(before, later, rcond=None)[0]
    total = float(later @ later)
    if total == 0.0:
        return 1.0
    rest = float(np.sum((later - before @ weights) ** 2)) / total
    return max(0.0, 1.0 - rest * len(later) / (len(later) - _LAGS))


def fit_groups(E: Floats, spread: Floats, period: int) -> Floats:
    """Return how well the other rows of a group determine its last row; (d,).

    Groups have ``period`` rows: consecutive ones, from any first row, or those at the same place
    of equal parts of the table. One linear function is fitted for all groups. What it does not
    explain is compared with the variance of the noise, or of the records if that is smaller: an
    error larger than the records vary reveals nothing. What chance explains is subtracted.
    """
    best, count = np.zeros(E.shape[1]), (len(E) - period + 1) // period
    if count < _MIN_GROUPS * period:
        return best
    chance = _SHARE_DEVIATIONS * math.sqrt(2.0 * (period - 1)) / count
    centred = E - E.mean(axis=0)
    peak = np.abs(centred).max(axis=0)
    unit = np.where(peak > 1e-100, peak, 1.0)
    scaled = centred / unit
    varies = np.where(spread > 0.0, spread / unit / unit, np.inf)
    parts = scaled[: len(E) // period * period].reshape(period, -1, E.shape[1])
    consecutive = (
        scaled[start : start + count * period].reshape(count, period, -1) for start in range(period)
    )
    for groups in (parts.swapaxes(0, 1), *consecutive):  # (number of groups, period, d)
        before, later = groups[:, :-1].transpose(2, 0, 1), groups[:, -1].T[..., None]
        crossed = before.swapaxes(1, 2)
        weights = np.linalg.pinv(crossed @ before, hermitian=True) @ (crossed @ later)
        total = np.minimum(np.sum(later**2, axis=(1, 2)), varies * len(groups))
        rest = np.sum((later - before @ weights) ** 2, axis=(1, 2))
        rest = np.divide(rest, total, out=np.zeros_like(rest), where=total > 0.0)
        share = 1.0 - rest * len(groups) / (len(groups) - period + 1)
        best = np.maximum(best, (share - chance) / (1.0 - chance))
    return best


def rank(values: Floats) -> Floats:
    """Return ranks; equal values have equal ones."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - counts / 2.0)[place]
    return ranks


def compare_neighbours(V: Floats) -> Floats:
    """Return 1 minus the ratio of von Neumann of each column; a constant column is determined."""
    variance = V.var(axis=0)
    steps = np.mean(np.diff(V, axis=0) ** 2, axis=0)
    return np.where(variance > 0.0, 1.0 - steps / np.maximum(2.0 * variance, 1e-300), 1.0)
