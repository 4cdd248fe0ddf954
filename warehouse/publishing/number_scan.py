"""The numbers of a release: original values and records, where there are more than chance makes.

The file is read three times: first its values, then together with the records, then once more for
what was found in the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Bools, Floats
from warehouse.publishing.expected_content import ExpectedContent, OriginalRows

if TYPE_CHECKING:
    import pyarrow as pa

FALSE_ALARM_PROBABILITY = 1e-9
MAX_RARE_RECORDS = 3  # a value held by at most so many records can point at one of them
MAX_VALUES_OFF_GRID = 1_000_000  # different ones; a correct release has none, or a few bounds
MERGE_VALUES = 1_000_000  # counted values are merged in portions of at least so many
Hashes = NDArray[np.uint64]


class NumberScan:
    """What the numeric columns of a release have in common with its records."""

    def __init__(self, expected: ExpectedContent) -> None:
        self.expected = expected
        self.compares_rows = expected.same_columns and max_equal_rows(expected) < expected.rows
        self.is_finite = True
        s = len(expected.columns)
        self.low, self.high = np.full(s, np.inf), np.full(s, -np.inf)
        self.off_grid = np.zeros(0)
        self.hashes: list[Hashes] = []  # of the released rows
        self.row_hashes = np.zeros(0, dtype=np.uint64)  # the same, sorted
        self.equal = np.zeros((0, 2), dtype=np.uint64)  # of records that a released row may equal
        self.own_rows = self.own_values = self.width = 0
        self.counts: dict[object, ValueCounts] = {}  # of the numbers of all records, by kind

    def read_rows(self, table: pa.Table) -> None:
        """Read further released rows, without their records."""
        expected = self.expected
        if not expected.columns:
            return
        Y = self.list_numbers(table)
        self.is_finite = self.is_finite and bool(np.all(np.isfinite(Y)))
        self.low = np.minimum(self.low, Y.min(axis=0, initial=np.inf))
        self.high = np.maximum(self.high, Y.max(axis=0, initial=-np.inf))
        if expected.grid is not None and len(self.off_grid) <= MAX_VALUES_OFF_GRID:
            found = Y[np.rint(Y / expected.grid) * expected.grid != Y]
            self.off_grid = np.union1d(self.off_grid, found)
        if self.compares_rows:
            self.hashes.append(hash_rows(Y, 0))

    def end_rows(self) -> None:
        """Prepare the comparison, when all released rows were read."""
        if self.hashes:
            self.row_hashes, self.hashes = np.concatenate(self.hashes), []
            self.row_hashes.sort()

    def compare(self, table: pa.Table, records: OriginalRows) -> None:
        """Compare further released rows with the records behind them."""
        expected = self.expected
        if not expected.columns:
            return
        Y = self.list_numbers(table)
        if expected.same_columns:
            X = records.numbers[0]
            self.own_rows += int(np.count_nonzero((X == Y).all(axis=1)))
        if self.compares_rows:
            found = X[find_sorted(hash_rows(X, 0), self.row_hashes)]
            if len(found):
                pairs = np.column_stack([hash_rows(found, 0), hash_rows(found, 1)])
                self.equal = np.unique(np.concatenate([self.equal, pairs]), axis=0)
        self.width = sum(X.shape[1] for X in records.numbers)
        self.own_values += count_own_values(Y[:, self.high > self.low], records.numbers)
        if expected.grid is not None:
            for k, X in enumerate(records.numbers):
                self.count(("records", k), X)

    def list_numbers(self, table: pa.Table) -> Floats:
        """Return the numeric columns, (m, s)."""
        return np.column_stack([table.column(name).to_numpy() for name in self.expected.columns])

    def count(self, kind: object, X: Floats) -> None:
        """Count those of the private numbers that a released cell may equal."""
        assert self.expected.grid is not None
        values = X.ravel() + 0.0
        may_occur = find_sorted(values, self.off_grid)
        for g in np.unique(self.expected.grid).tolist():
            may_occur |= np.rint(values / g) * g == values
        self.counts.setdefault(kind, ValueCounts()).add(values[may_occur])

    def find_leaks(self, read: Callable[[], Iterable[pa.Table]]) -> Iterator[str]:
        """Yield what is wrong with the numbers."""
        expected = self.expected
        if not expected.columns:
            return
        if not self.is_finite:
            yield "it holds values that are not numbers."
        if len(self.off_grid) > MAX_VALUES_OFF_GRID:
            yield "its values are not on the grid of the noise."
        if len(self.equal) and self.count_equal_rows(read) > max_equal_rows(expected):
            yield "it holds rows equal to original ones, more than chance makes."
        if expected.same_columns and self.own_rows > max_own_rows(expected):
            yield "it holds records as they are, more than chance makes."
        if self.own_values > self.max_own_values():
            yield "it holds values of the records themselves, more than chance makes."
        if self.has_rare_values(read):
            yield "it holds rare original values, more than chance makes."

    def count_equal_rows(self, read: Callable[[], Iterable[pa.Table]]) -> int:
        """Return how many released rows equal any record.

        Rows are compared by 128 bits, which differ for different rows with near certainty.
        """
        known = {(first, second) for first, second in self.equal.tolist()}
        first = np.unique(self.equal[:, 0])
        count = 0
        for table in read():
            Y = self.list_numbers(table)
            Y = Y[find_sorted(hash_rows(Y, 0), first)]
            pairs = zip(hash_rows(Y, 0).tolist(), hash_rows(Y, 1).tolist(), strict=True)
            count += sum(pair in known for pair in pairs)
        return count

    def max_own_values(self) -> int:
        """Return the most records with a cell that equals one of their own numbers by chance."""
        pairs = int(np.count_nonzero(self.high > self.low)) * self.width
        return max_by_chance(self.expected.rows, min(1.0, pairs * self.expected.atom))

    def has_rare_values(self, read: Callable[[], Iterable[pa.Table]]) -> bool:
        """Return whether more cells equal a number that few records hold than chance makes.

        Only numbers on the released grid can be met by chance. For columns that are not on a grid
        (components mapped back) there is no such probability; the two checks before cover them.
        """
        expected = self.expected
        if expected.grid is None:
            return False
        for k, X in expected.originals.others():
            self.count(("ids", k), X)
        rare = np.unique(np.concatenate([each.list_rare() for each in self.counts.values()]))
        if not len(rare):
            return False
        seen = np.zeros(len(expected.columns), dtype=np.int64)
        for table in read():
            Y = self.list_numbers(table)
            seen += find_sorted(Y.ravel(), rare).reshape(Y.shape).sum(axis=0)
        for count, g in zip(seen.tolist(), expected.grid.tolist(), strict=True):
            on_grid = int(np.count_nonzero(np.rint(rare / g) * g == rare))
            if count > max_by_chance(expected.rows, min(1.0, on_grid * expected.atom)):
                return True
        return False


class ValueCounts:
    """How often each of some values occurs, up to ``MAX_RARE_RECORDS`` + 1 times."""

    def __init__(self) -> None:
        self.values, self.counts = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._new: list[tuple[Floats, NDArray[np.int64]]] = []
        self._size = 0

    def add(self, values: Floats) -> None:
        """Count further values."""
        found = np.unique(values, return_counts=True)
        self._new.append(found)
        self._size += len(found[0])
        if self._size > max(MERGE_VALUES, len(self.values)):
            self._merge()

    def list_rare(self) -> Floats:
        """Return the values that occur at most ``MAX_RARE_RECORDS`` times, except zero."""
        self._merge()
        return np.asarray(self.values[(self.counts <= MAX_RARE_RECORDS) & (self.values != 0.0)])

    def _merge(self) -> None:
        values = np.concatenate([self.values, *(each for each, _ in self._new)])
        counts = np.concatenate([self.counts, *(each for _, each in self._new)])
        self.values, places = np.unique(values, return_inverse=True)
        sums = np.bincount(places, counts, len(self.values)).astype(np.int64)
        self.counts = sums.clip(max=MAX_RARE_RECORDS + 1)
        self._new, self._size = [], 0


def find_sorted(values: NDArray[np.generic], among: NDArray[np.generic]) -> Bools:
    """Return which of the values are among others, which are sorted."""
    if not len(among):
        return np.zeros(len(values), dtype=np.bool_)
    place = np.searchsorted(among, values).clip(max=len(among) - 1)
    return np.asarray(among[place] == values)


def hash_rows(rows: Floats, number: int) -> Hashes:
    """Return 64 bits for each row; equal rows have equal bits, for each ``number`` other ones."""
    words = np.ascontiguousarray(rows + 0.0).view(np.uint64)
    total = np.full(len(rows), number, dtype=np.uint64)
    for column in words.T:
        total = mix(total ^ column)
    return total


def mix(words: Hashes) -> Hashes:
    """Return words that depend on all bits of the given ones (the finalizer of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def count_own_values(Y: Floats, numbers: tuple[Floats, ...]) -> int:
    """Return how many records have a cell that equals one of their own numbers.

    Zero is left out, because linear maps send it to itself; constant columns are left out by the
    caller.
    """
    hit = np.zeros(len(Y), dtype=bool)
    for X in numbers:
        for column in Y.T:
            hit |= np.any((column[:, None] == X) & (X != 0.0), axis=1)
    return int(np.count_nonzero(hit))


def max_equal_rows(expected: ExpectedContent) -> int:
    """Return the most rows that equal an original one by chance.

    A row equals one of n others with a probability of at most n atom^s, because its s components
    are drawn independently.
    """
    per_row = min(1.0, expected.rows * expected.atom**expected.draws)
    return max_by_chance(expected.rows, per_row)


def max_own_rows(expected: ExpectedContent) -> int:
    """Return the most rows that equal their own record by chance.

    That is less probable than to equal any record.
    """
    return max_by_chance(expected.rows, expected.atom**expected.draws)


def max_by_chance(trials: int, chance: float) -> int:
    """Return the smallest count that a binomial exceeds with less than the allowed probability."""
    from scipy.special import bdtrc

    low, high = -1, trials  # bdtrc(k) = P(more than k)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if bdtrc(middle, trials, chance) < FALSE_ALARM_PROBABILITY
            else (middle, high)
        )
    return high
