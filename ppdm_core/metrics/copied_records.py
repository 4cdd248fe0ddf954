from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._disguised_records import (
    find_combined,
    find_mirrored,
    find_records_as_noise,
)
from ppdm_core.metrics._equal_cells import MAX_VALUE_SHARE, find_equal_cells
from ppdm_core.metrics._gamma_tail import fit_gamma
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._release import check_same_columns
from ppdm_core.model.arrays import Bools, Floats, Ints

_MAX_CHANCE_FACTOR = 5.0  # noise keeps a value so many times oftener than it meets a random one
_MIN_CHANCE = 1e-3  # of a kept value, in every column
_EQUAL_ROWS_PROBABILITY = 1e-6  # of a false alarm
_NEAR_ROWS_PROBABILITY = 1e-9  # smaller, because the law of the gaps is only fitted


class CopiedRecords(ReleaseMetric):
    """Share of the records whose row is a copy, or far nearer to it than the noise of the others.

    Copies: rows that hold several values of one record more often than chance makes equal values,
    whether other records hold these values too or not. Near copies: rows whose gaps to their
    record are among the smallest in all columns at once, against a gamma distribution fitted to
    the typical rows. Disguised copies: the record mirrored in the mean of all, its mean, sum or
    difference with another record, or another record as its noise.
    Averages over the table do not show a few such records. Only rows that chance explains with a
    probability below one in a million count, so that the value of a correct release is 0.
    """

    name = "copied_records"
    title = "Copied records"
    describe = "share of the records that are copied, exactly or nearly, beyond chance"
    template = (
        "{value} of the records are in the release as they are, nearly so, or with many of their "
        "values, which the noise of the other rows does not explain."
    )
    kind = "privacy"
    better = "down"
    interval_method = "none"
    needs_alignment = False
    on_original = 1.0
    must_notice: ClassVar[Mapping[str, float]] = {"verbatim rows": 0.85}

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_same_columns(self.name, comparison)
        varying = (np.ptp(comparison.X, axis=0) > 0) & (np.ptp(comparison.Y, axis=0) > 0)
        X, Y, records = comparison.X[:, varying], comparison.Y[:, varying], comparison.records
        rng = comparison.rng(self.name)
        exposed = [
            record[rows] for rows, record in (find_copies(X, Y), find_equal_cells(X, Y, rng))
        ]
        if not bool((records < 0).any()):
            rows = find_near_copies(X[records], Y) | find_mirrored(X, X[records], Y)
            rows |= find_combined(X, X[records], Y, rng)
            rows |= find_records_as_noise(X, X[records], Y, rng)
            exposed.append(records[rows])
        value = len(np.unique(np.concatenate(exposed))) / len(X)
        return Measurement(value, lambda keep: value)

    def baseline(self, comparison: ReleaseComparison) -> float:
        return 0.0


def find_copies(X: Floats, Y: Floats) -> tuple[Bools, Ints]:
    """Return the rows that hold more values of one record than chance explains, and that record.

    Only values that one record holds count, and that few rows hold.
    """
    from scipy.special import pdtrc

    holder = find_holders(X, Y)  # (m, d)
    record, count = find_most_frequent(holder)
    chance = _MAX_CHANCE_FACTOR * np.maximum(holder >= 0, 0).mean(axis=0) / len(X)
    tail = sum_tail_probabilities(np.minimum(1.0, chance + _MIN_CHANCE))
    found = np.zeros(len(Y), dtype=np.bool_)
    for least in range(X.shape[1], 1, -1):
        rows = count >= least
        seen = int(rows.sum())
        expected = len(Y) * min(1.0, len(X) * tail[least])
        if seen and pdtrc(seen - 1, expected) < _EQUAL_ROWS_PROBABILITY:
            found |= rows
    return found, record


def find_holders(X: Floats, Y: Floats) -> Ints:
    """Return for each released value the one record that holds it, -1 if none or several do."""
    found = np.full(Y.shape, -1, dtype=np.int64)
    for j in range(X.shape[1]):
        order = np.argsort(X[:, j], kind="stable")
        column = X[order, j]
        first = np.searchsorted(column, Y[:, j], side="left")
        last = np.searchsorted(column, Y[:, j], side="right")
        held = last - first == 1
        found[held, j] = order[first[held]]
        repeated = np.bincount(found[held, j], minlength=len(X)) > MAX_VALUE_SHARE * len(Y) + 1
        found[held, j] = np.where(repeated[found[held, j]], -1, found[held, j])
    return found


def find_most_frequent(holder: Ints) -> tuple[Ints, Ints]:
    """Return the record that most values of each row belong to, and how many do; (m,)."""
    m, d = holder.shape
    ordered = np.sort(holder, axis=1)
    run = np.zeros(m, dtype=np.int64)
    record, best = np.full(m, -1, dtype=np.int64), np.zeros(m, dtype=np.int64)
    for j in range(d):
        same = ordered[:, j] == ordered[:, j - 1] if j else np.zeros(m, dtype=np.bool_)
        run = np.where(ordered[:, j] < 0, 0, np.where(same, run + 1, 1))
        record = np.where(run > best, ordered[:, j], record)
        best = np.maximum(best, run)
    return record, best


def sum_tail_probabilities(chances: Floats) -> Floats:
    """Return the probability of k successes or more in independent trials, for k = 0, 1, ..."""
    probability = np.ones(1)
    for chance in chances.tolist():
        probability = np.convolve(probability, [1.0 - chance, chance])
    return np.asarray(np.cumsum(probability[::-1])[::-1])


def find_near_copies(X: Floats, Y: Floats) -> Bools:
    """Return the rows that are nearer to their record in all columns than the others explain."""
    from scipy.special import gammaincc, pdtrc
    from scipy.stats import rankdata

    m = len(Y)
    found = np.zeros(m, dtype=np.bool_)
    if X.shape[1] < 2 or m < 20:
        return found
    share = rankdata(np.abs(Y - X), method="max", axis=0) / m  # (m, d) in (0, 1]
    nearness = -np.log(share).sum(axis=1)
    shape, scale = fit_gamma(*np.quantile(nearness, (0.5, 0.9)).tolist())
    if not shape > 0:
        return found
    order = np.argsort(-nearness, kind="stable")
    expected = m * gammaincc(shape, nearness[order] / scale)
    seen = np.arange(1, m + 1)
    surprising = pdtrc(seen - 1, expected) < _NEAR_ROWS_PROBABILITY
    half = surprising[: m // 2]
    if half.any():
        found[order[: int(np.flatnonzero(half)[-1]) + 1]] = True
    return found
