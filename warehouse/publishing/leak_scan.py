"""The door's last look at exactly the bytes that leave.

A check may block only if a correct sampler trips it with a probability below 1e-9: equal values
are compared with how often chance makes them, because refusing every coincidence would itself
tell something about the private table.
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

FALSE_ALARM = 1e-9
SHORTEST = 14  # 2/14! is below FALSE_ALARM
RARE = 3  # a value held by at most so many records can point at one of them


@dataclass(frozen=True, eq=False)
class Answered:
    """A categorical column that leaves, and what it held."""

    response: Response
    originals: Codes  # (n,) aligned to the released rows


@dataclass(frozen=True, eq=False)
class Expected:
    """What the candidate should look like."""

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
    answered: tuple[Answered, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that leaves."""
        answered = tuple(each.response.column.name for each in self.answered)
        return self.columns + answered + ((self.label,) if self.label else ())


def check_bytes(path: Path, expected: Expected) -> None:
    """Raises Refused with one sentence for the first thing that must not leave."""
    import pyarrow.parquet as pq

    # In turn: the content of a file with other columns cannot be looked at.
    for complaint in chain(footer(path, expected), content(pq.read_table(path), expected)):
        raise Refused(
            f"The door stopped {path.name}: {complaint}",
            file=path.name,
            remedy="Nothing was published; report this, a correct run does not do it.",
        )


def footer(path: Path, expected: Expected) -> Iterator[str]:
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


def content(table: pa.Table, expected: Expected) -> Iterator[str]:
    if table.num_rows != expected.rows:
        yield "it does not hold the rows that were audited."
        return
    if expected.label and not holds_only(table, expected.label, {*expected.categories, None}):
        yield "its label holds a value that the release file does not declare."
    if has_source_order(expected.source_order):
        yield "its rows are in the order of the source."
    yield from categories(table, expected.answered)
    if expected.columns:
        yield from numbers(table, expected)


def holds_only(table: pa.Table, name: str, allowed: set[str | None]) -> bool:
    return set(table.column(name).unique().to_pylist()) <= allowed


def categories(table: pa.Table, answered: tuple[Answered, ...]) -> Iterator[str]:
    """Nothing but declared categories, and no more true ones than the law of the answers makes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_row_true = np.ones(table.num_rows, dtype=bool)
    row_chance = 1.0
    for each in answered:
        column, chance = each.response.column, each.response.kept
        if not holds_only(table, column.name, {*column.categories, *[None] * column.missing}):
            yield "a category is not one that the release file declares."
        codes = pc.index_in(table.column(column.name), pa.array(column.categories, pa.string()))
        is_true = pc.fill_null(codes, -1).to_numpy() == each.originals
        if np.count_nonzero(is_true) > most_by_chance(table.num_rows, chance):
            yield "it holds true categories, more than chance makes."
        is_row_true &= is_true
        row_chance *= chance
    if answered and np.count_nonzero(is_row_true) > most_by_chance(table.num_rows, row_chance):
        yield "it holds records with all their categories true, more than chance makes."


def numbers(table: pa.Table, expected: Expected) -> Iterator[str]:
    Y = np.column_stack([table.column(name).to_numpy() for name in expected.columns])
    if not np.all(np.isfinite(Y)):
        yield "it holds values that are not numbers."
    if expected.same_columns and equal_rows(Y, expected.originals[0]) > chance_rows(expected):
        yield "it holds rows equal to original ones, more than chance makes."
    if expected.same_columns and own_rows(Y, expected) > chance_own_rows(expected):
        yield "it holds records as they are, more than chance makes."
    if own_matches(Y, expected) > chance_own(Y, expected):
        yield "it holds values of the records themselves, more than chance makes."
    if rare_matches(Y, expected):
        yield "it holds rare original values, more than chance makes."


def has_source_order(position: Floats) -> bool:
    """Released and source order agree (or are opposite) more than a random order does.

    Spearman's coefficient has variance 1/(n - 1) and lighter tails than the normal law, which
    exceeds 6.5 deviations with probability 8e-11; a short table can only be in order outright,
    which has probability 2/n!. Rows of one record share a rank.
    """
    from scipy.stats import rankdata

    n = len(position)
    if n < SHORTEST or np.ptp(position) == 0:
        return False
    ranks = rankdata(position)
    rho = abs(float(np.corrcoef(ranks, np.arange(n))[0, 1]))
    return rho >= min(6.5 / math.sqrt(n - 1), 1.0 - 1e-12)


def equal_rows(Y: Floats, X: Floats) -> int:
    return int(np.count_nonzero(np.isin(as_keys(Y), as_keys(X))))


def as_keys(rows: Floats) -> NDArray[np.void]:
    """Each row as one value that can be compared."""
    packed = np.ascontiguousarray(rows + 0.0)
    return packed.view(np.dtype((np.void, packed.itemsize * packed.shape[1]))).ravel()


def chance_rows(expected: Expected) -> int:
    """A row equals one of n others with at most n atom^s: its components are drawn apart."""
    per_row = min(1.0, expected.rows * expected.atom**expected.draws)
    return most_by_chance(expected.rows, per_row)


def own_rows(Y: Floats, expected: Expected) -> int:
    """Rows that equal the record that they were made from, which chance makes more seldom."""
    return int(np.count_nonzero((expected.originals[0] == Y).all(axis=1)))


def chance_own_rows(expected: Expected) -> int:
    return most_by_chance(expected.rows, expected.atom**expected.draws)


def own_matches(Y: Floats, expected: Expected) -> int:
    """Records with a cell that equals one of their own numbers.

    Zero is left out, because linear maps send it to itself, and so are columns that say the same
    of everybody.
    """
    telling = Y[:, np.ptp(Y, axis=0) > 0]
    hit = np.zeros(len(Y), dtype=bool)
    for X in expected.originals:
        for column in telling.T:
            hit |= np.any((column[:, None] == X) & (X != 0.0), axis=1)
    return int(np.count_nonzero(hit))


def chance_own(Y: Floats, expected: Expected) -> int:
    pairs = Y.shape[1] * sum(X.shape[1] for X in expected.originals)
    return most_by_chance(len(Y), min(1.0, pairs * expected.atom))


def rare_matches(Y: Floats, expected: Expected) -> bool:
    """Cells that equal a number which few records hold, of whomever.

    Only numbers on the released grid can be met by chance. Columns that are not on a grid
    (components mapped back) have no such law, and are covered by the two checks before.
    """
    if expected.grid is None:
        return False
    rare = np.unique(np.concatenate([rare_of(X) for X in (*expected.originals, *expected.others)]))
    for column, g in zip(Y.T, expected.grid.tolist(), strict=True):
        on_grid = rare[np.rint(rare / g) * g == rare]
        seen = int(np.count_nonzero(np.isin(column, rare)))
        if seen > most_by_chance(len(column), min(1.0, len(on_grid) * expected.atom)):
            return True
    return False


def rare_of(X: Floats) -> Floats:
    values, counts = np.unique(X, return_counts=True)
    return np.asarray(values[(counts <= RARE) & (values != 0.0)])


def most_by_chance(trials: int, chance: float) -> int:
    """The smallest count that a binomial exceeds with a probability below FALSE_ALARM."""
    from scipy.special import bdtrc

    low, high = -1, trials  # bdtrc(k) = P(more than k)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtrc(middle, trials, chance) < FALSE_ALARM else (middle, high)
    return high
