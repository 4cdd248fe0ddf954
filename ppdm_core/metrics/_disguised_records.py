"""Find rows that are a record in disguise: mirrored, combined with another, or as its noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.model.arrays import Bools, Floats
from ppdm_core.numerics.neighbours import find_nearest_rows

_MAX_GAP = 1e-6  # of a column's deviation: values with a larger gap are not the same
_SHUFFLES = 5
_MIN_COLUMNS = 2  # that vary: one value is no record
_MIN_ROWS = 3  # that must be found: a single one may be a coincidence of rounded values
_MIN_FACTOR = 5  # how many times as many as by chance
_MAX_ROWS = 1_000  # whose noise is compared with the records
_NEAR_SHARE = 0.01  # of the noise of other rows that is so near to a record
_MAX_DISTANCE = 0.1  # deviations of the columns
_MIN_NEAR_SHARE = 0.1  # of the rows, beyond chance

# What is left of a row without its own record, if it is a combination of two records.
_REMAINDERS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "mean": lambda X, Y: 2.0 * Y - X,
    "sum": lambda X, Y: Y - X,
    "difference": lambda X, Y: X - Y,
    "reversed difference": lambda X, Y: X + Y,
}


def find_mirrored(everyone: Floats, X: Floats, Y: Floats) -> Bools:
    """Return the rows ``Y`` that are their record ``X``, mirrored in the mean of all records."""
    gaps = np.abs(2.0 * everyone.mean(axis=0) - Y - X)
    found: Bools = (gaps <= _MAX_GAP * everyone.std(axis=0)).all(axis=1)
    is_enough = X.shape[1] >= _MIN_COLUMNS and found.sum() >= _MIN_ROWS
    return found if is_enough else np.zeros_like(found)


def find_combined(everyone: Floats, X: Floats, Y: Floats, rng: np.random.Generator) -> Bools:
    """Return the rows ``Y`` that are the mean, sum or difference of their record and another.

    Rows are also combined with the records of other rows: values on a grid meet by chance.
    """
    found = np.zeros(len(Y), dtype=np.bool_)
    if X.shape[1] < _MIN_COLUMNS:
        return found
    lookup = RecordLookup(everyone, rng)
    for remove in _REMAINDERS.values():
        own = lookup.find(remove(X, Y))
        least = _MIN_ROWS
        for _ in range(_SHUFFLES if own.sum() >= least else 0):
            by_chance = int(lookup.find(remove(rng.permutation(X), Y)).sum())
            least = max(least, _MIN_FACTOR * by_chance)
        if own.sum() >= least:
            found |= own
    return found


def find_records_as_noise(
    everyone: Floats, X: Floats, Y: Floats, rng: np.random.Generator
) -> Bools:
    """Return the rows ``Y`` that are their record ``X`` plus a multiple of another record.

    An attacker who holds all records finds both. The differences between rows and records are
    standardised and compared with all records. Differences of rows and records that do not belong
    together show how close they come by chance.
    """
    found = np.zeros(len(Y), dtype=np.bool_)
    if X.shape[1] < _MIN_COLUMNS or len(Y) < 1.0 / _NEAR_SHARE:
        return found
    rows = rng.permutation(len(Y))[:_MAX_ROWS]
    records = standardise(everyone)
    noises = (Y - X, *(Y - rng.permutation(X) for _ in range(2)))
    for sign in (1.0, -1.0):
        own, *others = (
            find_nearest_rows(sign * standardise(noise)[rows], records, 1)[1][:, 0]
            for noise in noises
        )  # squared distances
        near = own < min(_MAX_DISTANCE**2, np.quantile(np.concatenate(others), _NEAR_SHARE))
        if near.mean() >= _MIN_NEAR_SHARE:
            found[rows[near]] = True
    return found


def standardise(A: Floats) -> Floats:
    """Return columns with mean 0 and deviation 1."""
    spread = A.std(axis=0)
    return np.asarray((A - A.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


class RecordLookup:
    """A search for records with given values, by one number for each record."""

    def __init__(self, X: Floats, rng: np.random.Generator) -> None:
        spread = X.std(axis=0)
        self.unit = np.where(spread > 0, spread, 1.0)
        self.weights = rng.standard_normal(X.shape[1]) / self.unit
        order = np.argsort(X @ self.weights, kind="stable")
        self.X, self.numbers = X[order], (X @ self.weights)[order]

    def find(self, A: Floats) -> Bools:
        """Return which rows are records; up to rounding errors."""
        place = np.searchsorted(self.numbers, A @ self.weights)
        found = np.zeros(len(A), dtype=np.bool_)
        for each in (place - 1, place):
            gaps = np.abs(self.X[np.clip(each, 0, len(self.X) - 1)] - A)
            found |= (gaps <= _MAX_GAP * self.unit).all(axis=1)
        return found
