"""The last check before publishing: a scan of exactly the bytes that are published.

A check may block only if a correct sampler fails it with a probability below 1e-9: equal values
are compared with how often chance makes them, because refusing every coincidence would itself
reveal something about the private table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.errors import Refused
from ppdm_core.model.release import Response

if TYPE_CHECKING:
    import pyarrow as pa

FALSE_ALARM_PROBABILITY = 1e-9
MIN_ORDERED_ROWS = 14  # 2/14! is below FALSE_ALARM_PROBABILITY
MAX_RARE_RECORDS = 3  # a value held by at most so many records can point at one of them


@dataclass(frozen=True, eq=False)
class ReleasedCategory:
    """A categorical column that is published, and what it held."""

    response: Response
    originals: Codes  # (n,) aligned to the released rows


@dataclass(frozen=True, eq=False)
class ExpectedContent:
    """What the file of a release must hold, and what it must not."""

    columns: tuple[str, ...]  # the numeric ones
    label: str | None
    categories: tuple[str, ...]
    rows: int
    atom: float  # largest chance of any one value of a released component
    draws: int  # independent components behind a row
    grid: Floats | None  # (s,) step of each released column, if the columns are on a grid
    forbidden: frozenset[str]  # names of identifiers and excluded columns
    originals: tuple[Floats, ...]  # (n, d) each, aligned to the released rows: source units, scaled
    others: tuple[Floats, ...]  # further private numbers, of all records: numeric ids
    same_columns: bool
    source_order: Floats  # (n,) position in the source of each released row
    categorical: tuple[ReleasedCategory, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every published column."""
        categorical = tuple(each.response.column.name for each in self.categorical)
        return self.columns + categorical + ((self.label,) if self.label else ())


def check_bytes(path: Path, expected: ExpectedContent) -> None:
    """Raise Refused with one sentence for the first thing that must not be published."""
    import pyarrow.parquet as pq

    # One after the other: the content of a file with other columns cannot be read.
    complaints = chain(
        find_footer_leaks(path, expected), find_content_leaks(pq.read_table(path), expected)
    )
    for complaint in complaints:
        raise Refused(
            f"{path.name} cannot be published: {complaint}",
            file=path.name,
            remedy="Nothing was published; report this, a correct run does not do it.",
        )


def find_footer_leaks(path: Path, expected: ExpectedContent) -> Iterator[str]:
    """Yield what is wrong with the metadata of the file."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    names = tuple(metadata.schema.names)
    if names != expected.names:
        yield "its columns are not those of the release."
    if expected.forbidden & set(names):
        yield "it holds an identifier or an excluded column."
    if metadata.metadata:
        yield "its footer carries metadata."
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            if chunk.is_stats_set:
                yield "its footer carries column statistics."
            if any("DICTIONARY" in encoding for encoding in chunk.encodings):
                yield "its columns carry dictionaries."


def find_content_leaks(table: pa.Table, expected: ExpectedContent) -> Iterator[str]:
    """Yield what is wrong with the rows of the file."""
    if table.num_rows != expected.rows:
        yield "it does not hold the rows that were audited."
        return
    if expected.label and not has_only(table, expected.label, {*expected.categories, None}):
        yield "its label holds a value that the release file does not declare."
    if has_source_order(expected.source_order):
        yield "its rows are in the order of the source."
    yield from find_category_leaks(table, expected.categorical)
    if expected.columns:
        yield from find_number_leaks(table, expected)


def has_only(table: pa.Table, name: str, allowed: set[str | None]) -> bool:
    """Return whether a column holds no other values than these."""
    return set(table.column(name).unique().to_pylist()) <= allowed


def find_category_leaks(
    table: pa.Table, categorical: tuple[ReleasedCategory, ...]
) -> Iterator[str]:
    """Yield undeclared categories, and more true ones than the randomized responses make."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_row_true = np.ones(table.num_rows, dtype=bool)
    row_chance = 1.0
    for each in categorical:
        column, chance = each.response.column, each.response.keep_probability
        if not has_only(table, column.name, {*column.categories, *[None] * column.missing}):
            yield "a category is not one that the release file declares."
        codes = pc.index_in(table.column(column.name), pa.array(column.categories, pa.string()))
        is_true = pc.fill_null(codes, -1).to_numpy() == each.originals
        if np.count_nonzero(is_true) > max_by_chance(table.num_rows, chance):
            yield "it holds true categories, more than chance makes."
        is_row_true &= is_true
        row_chance *= chance
    if categorical and np.count_nonzero(is_row_true) > max_by_chance(table.num_rows, row_chance):
        yield "it holds records with all their categories true, more than chance makes."


def find_number_leaks(table: pa.Table, expected: ExpectedContent) -> Iterator[str]:
    """Yield original numbers and records, where there are more than chance makes."""
    Y = np.column_stack([table.column(name).to_numpy() for name in expected.columns])
    if not np.all(np.isfinite(Y)):
        yield "it holds values that are not numbers."
    is_comparable = expected.same_columns
    if is_comparable and count_equal_rows(Y, expected.originals[0]) > max_equal_rows(expected):
        yield "it holds rows equal to original ones, more than chance makes."
    if is_comparable and count_own_rows(Y, expected) > max_own_rows(expected):
        yield "it holds records as they are, more than chance makes."
    if count_own_values(Y, expected) > max_own_values(Y, expected):
        yield "it holds values of the records themselves, more than chance makes."
    if has_rare_values(Y, expected):
        yield "it holds rare original values, more than chance makes."


def has_source_order(position: Floats) -> bool:
    """Return whether released and source order agree (or are opposite) more than by chance.

    Spearman's coefficient has variance 1/(n - 1) and lighter tails than the normal distribution,
    which exceeds 6.5 deviations with probability 8e-11; a short table can only be completely in
    order, which has probability 2/n!. Rows of one record share a rank.
    """
    from scipy.stats import rankdata

    n = len(position)
    if n < MIN_ORDERED_ROWS or np.ptp(position) == 0:
        return False
    ranks = rankdata(position)
    rho = abs(float(np.corrcoef(ranks, np.arange(n))[0, 1]))
    return rho >= min(6.5 / math.sqrt(n - 1), 1.0 - 1e-12)


def count_equal_rows(Y: Floats, X: Floats) -> int:
    """Return how many rows of Y equal any row of X."""
    return int(np.count_nonzero(np.isin(pack_rows(Y), pack_rows(X))))


def pack_rows(rows: Floats) -> NDArray[np.void]:
    """Return each row as one value that can be compared."""
    packed = np.ascontiguousarray(rows + 0.0)
    return packed.view(np.dtype((np.void, packed.itemsize * packed.shape[1]))).ravel()


def max_equal_rows(expected: ExpectedContent) -> int:
    """Return the most rows that equal an original one by chance.

    A row equals one of n others with a probability of at most n atom^s, because its s components
    are drawn independently.
    """
    per_row = min(1.0, expected.rows * expected.atom**expected.draws)
    return max_by_chance(expected.rows, per_row)


def count_own_rows(Y: Floats, expected: ExpectedContent) -> int:
    """Return how many rows equal their own record, which is less probable than any record."""
    return int(np.count_nonzero((expected.originals[0] == Y).all(axis=1)))


def max_own_rows(expected: ExpectedContent) -> int:
    """Return the most rows that equal their own record by chance."""
    return max_by_chance(expected.rows, expected.atom**expected.draws)


def count_own_values(Y: Floats, expected: ExpectedContent) -> int:
    """Return how many records have a cell that equals one of their own numbers.

    Zero is left out, because linear maps send it to itself, and so are constant columns.
    """
    varying = Y[:, np.ptp(Y, axis=0) > 0]
    hit = np.zeros(len(Y), dtype=bool)
    for X in expected.originals:
        for column in varying.T:
            hit |= np.any((column[:, None] == X) & (X != 0.0), axis=1)
    return int(np.count_nonzero(hit))


def max_own_values(Y: Floats, expected: ExpectedContent) -> int:
    """Return the most records with a cell that equals one of their own numbers by chance."""
    pairs = Y.shape[1] * sum(X.shape[1] for X in expected.originals)
    return max_by_chance(len(Y), min(1.0, pairs * expected.atom))


def has_rare_values(Y: Floats, expected: ExpectedContent) -> bool:
    """Return whether more cells equal a number that few records hold than chance makes.

    Only numbers on the released grid can be met by chance. For columns that are not on a grid
    (components mapped back) there is no such probability; the two checks before cover them.
    """
    if expected.grid is None:
        return False
    rare = np.unique(
        np.concatenate([find_rare_values(X) for X in (*expected.originals, *expected.others)])
    )
    for column, g in zip(Y.T, expected.grid.tolist(), strict=True):
        on_grid = rare[np.rint(rare / g) * g == rare]
        seen = int(np.count_nonzero(np.isin(column, rare)))
        if seen > max_by_chance(len(column), min(1.0, len(on_grid) * expected.atom)):
            return True
    return False


def find_rare_values(X: Floats) -> Floats:
    """Return the numbers that at most ``MAX_RARE_RECORDS`` records hold, except zero."""
    values, counts = np.unique(X, return_counts=True)
    return np.asarray(values[(counts <= MAX_RARE_RECORDS) & (values != 0.0)])


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
