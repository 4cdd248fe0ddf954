"""The last check before publishing: a scan of exactly the bytes that are published.

A check may block only if a correct sampler fails it with a probability below 1e-9: equal values
are compared with how often chance makes them, because refusing every coincidence would itself
reveal something about the private table.

The file and the records are read in blocks, so that memory hardly grows with the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import Refused
from ppdm_core.model.release import Response
from warehouse.publishing.expected_content import ExpectedContent, OriginalRows
from warehouse.publishing.number_scan import NumberScan, max_by_chance
from warehouse.sinks.parquet import read_tables

if TYPE_CHECKING:
    import pyarrow as pa

MIN_ORDERED_ROWS = 14  # 2/14! is below the probability of a false alarm
ReadTables = Callable[[], Iterable["pa.Table"]]  # the rows of a file, block by block


def check_bytes(path: Path, expected: ExpectedContent) -> None:
    """Raise Refused with one sentence for the first thing that must not be published."""
    # One after the other: the content of a file with other columns cannot be read.
    complaints = chain(
        find_footer_leaks(path, expected),
        find_content_leaks(lambda: read_tables(path), expected),
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


def find_content_leaks(read: ReadTables, expected: ExpectedContent) -> Iterator[str]:
    """Yield what is wrong with the rows of the file, which ``read`` reads from its beginning."""
    numbers, categories = NumberScan(expected), CategoryScan(expected.responses)
    labels: set[str | None] = set()
    rows = 0
    for table in read():
        rows += table.num_rows
        if expected.label:
            labels.update(table.column(expected.label).unique().to_pylist())
        numbers.read_rows(table)
    if rows != expected.rows:
        yield "it does not hold the rows that were audited."
        return
    order = OrderScan(rows)
    compared = 0
    numbers.end_rows()
    for table, records in pair_rows(read(), expected.originals.blocks()):
        compared += records.n
        order.add(records.position)
        categories.add(table, records)
        numbers.compare(table, records)
    if compared != rows:
        yield "it does not hold the rows that were audited."
        return
    if not labels <= {*expected.categories, None}:
        yield "its label holds a value that the release file does not declare."
    if order.is_source_order():
        yield "its rows are in the order of the source."
    yield from categories.find_leaks(rows)
    yield from numbers.find_leaks(read)


def pair_rows(
    tables: Iterable[pa.Table], originals: Iterator[OriginalRows]
) -> Iterator[tuple[pa.Table, OriginalRows]]:
    """Yield consecutive rows with the records behind them, until one of them ends."""
    held: OriginalRows | None = None
    for table in tables:
        start = 0
        while start < table.num_rows:
            if held is None or not held.n:
                held = next(originals, None)
                if held is None:
                    return
            size = min(held.n, table.num_rows - start)
            yield table.slice(start, size), held.slice(0, size)
            held, start = held.slice(size, held.n), start + size


class CategoryScan:
    """Undeclared categories, and more true ones than the randomized responses make."""

    def __init__(self, responses: tuple[Response, ...]) -> None:
        self.responses = responses
        self.found: list[set[str | None]] = [set() for _ in responses]
        self.true, self.true_rows = [0] * len(responses), 0

    def add(self, table: pa.Table, records: OriginalRows) -> None:
        """Compare further rows with their records."""
        import pyarrow as pa
        import pyarrow.compute as pc

        is_row_true = np.ones(table.num_rows, dtype=bool)
        for k, response in enumerate(self.responses):
            cells = table.column(response.column.name)
            self.found[k].update(cells.unique().to_pylist())
            codes = pc.index_in(cells, pa.array(response.column.categories, pa.string()))
            is_true = pc.fill_null(codes, -1).to_numpy() == records.codes[:, k]
            self.true[k] += int(np.count_nonzero(is_true))
            is_row_true &= is_true
        self.true_rows += int(np.count_nonzero(is_row_true))

    def find_leaks(self, rows: int) -> Iterator[str]:
        """Yield what is wrong with the categories."""
        row_chance = 1.0
        for response, found, true in zip(self.responses, self.found, self.true, strict=True):
            column, chance = response.column, response.keep_probability
            if not found <= {*column.categories, *[None] * column.missing}:
                yield "a category is not one that the release file declares."
            if true > max_by_chance(rows, chance):
                yield "it holds true categories, more than chance makes."
            row_chance *= chance
        if self.responses and self.true_rows > max_by_chance(rows, row_chance):
            yield "it holds records with all their categories true, more than chance makes."


class OrderScan:
    """The correlation of places in the release with places in the source."""

    def __init__(self, n: int) -> None:
        self.n, self.read = n, 0
        self.sums = np.zeros(3)  # of the places in the source, their squares, and the products

    def add(self, position: Floats) -> None:
        """Add the places of further rows, in the order of the release."""
        middle = (self.n - 1) / 2  # sums of centred numbers lose no digits
        here = np.arange(self.read, self.read + len(position)) - middle
        there = position - middle
        self.sums += there.sum(), there @ there, here @ there
        self.read += len(position)

    def is_source_order(self) -> bool:
        """Return whether released and source order agree (or are opposite) more than by chance.

        The coefficient of a random order has variance 1/(n - 1). Places in a source are spread
        evenly, so that its tails are lighter than those of the normal distribution, which exceeds
        6.5 deviations with probability 8e-11; a short table can only be completely in order, which
        has probability 2/n!. Rows of one record share a place.
        """
        n, (total, squares, products) = self.n, self.sums
        if n < MIN_ORDERED_ROWS:
            return False
        variance = squares - total**2 / n
        if variance <= 1e-12 * squares or squares == 0:
            return False
        rho = abs(products) / math.sqrt(variance * (n * (n**2 - 1) / 12))
        return bool(rho >= min(6.5 / math.sqrt(n - 1), 1.0 - 1e-12))
