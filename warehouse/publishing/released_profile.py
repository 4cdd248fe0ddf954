"""Distributions and correlations of a released table, read from its file alone.

Recipients can compute all of this from the file. Counts below ``SMALL_COUNT`` are left out here, so
that no page can show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.rows import BLOCK

MAX_COLUMNS = 24  # that are described
BINS = 16
SPREADS = 3.0  # standard deviations on each side of the mean that the bins cover
SMALL_COUNT = 10
MAX_CATEGORIES = 12  # the most frequent ones; the others are counted together
OTHERS, EMPTY = "(others)", "(empty)"


@dataclass(frozen=True)
class NumberProfile:
    """The distribution of a numeric column; the outer bins hold all values beyond them."""

    name: str
    mean: float
    deviation: float
    edges: tuple[float, ...]
    counts: tuple[int | None, ...]  # None: fewer than SMALL_COUNT


@dataclass(frozen=True)
class CategoryProfile:
    """The counts of a categorical column, the most frequent category first."""

    name: str
    categories: tuple[str, ...]
    counts: tuple[int | None, ...]  # None: fewer than SMALL_COUNT


@dataclass(frozen=True)
class ReleasedProfile:
    """The first columns of a released table, and its last one, which is the label if there is one.

    Correlations are those of the numeric columns, with two decimals; 0 for a constant column.
    """

    rows: int
    columns: int  # of the file
    numbers: tuple[NumberProfile, ...]
    categories: tuple[CategoryProfile, ...]
    correlations: tuple[tuple[float, ...], ...]


def read_released_profile(path: Path) -> ReleasedProfile | None:
    """Return the profile of a Parquet file; None if it has no rows or cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return profile_file(file) if file.metadata.num_rows else None
    except (OSError, pa.ArrowException):  # publishing refuses such a file
        return None


def profile_file(file: Any) -> ReleasedProfile:
    """Return the profile of an open Parquet file, which is read twice in blocks."""
    import pyarrow as pa

    fields = list(file.schema_arrow)
    shown = [*fields[: MAX_COLUMNS - 1], *fields[MAX_COLUMNS - 1 :][-1:]]
    names = [each.name for each in shown if pa.types.is_floating(each.type)]
    words = [each.name for each in shown if each.name not in names]
    n, mean, deviation = measure_spread(file, names)
    edges = mean + deviation * np.linspace(-SPREADS, SPREADS, BINS + 1)[:, None]  # (BINS + 1, d)
    products, bins = np.zeros((len(names), len(names))), np.zeros((len(names), BINS), np.int64)
    for X in iterate_numbers(file, names):
        Z = (X - mean) / np.where(deviation > 0, deviation, 1.0)
        products += Z.T @ Z
        bins += count_bins(X, edges)
    correlations = np.clip(np.round(products / n, 2), -1.0, 1.0) + 0.0  # no -0.0
    return ReleasedProfile(
        rows=n,
        columns=len(fields),
        numbers=tuple(
            NumberProfile(
                name,
                float(mean[j]),
                float(deviation[j]),
                tuple(edges[:, j].tolist()),
                tuple(map(hide_small, bins[j].tolist())),
            )
            for j, name in enumerate(names)
        ),
        categories=tuple(count_categories(file, name) for name in words),
        correlations=tuple(map(tuple, correlations.tolist())),
    )


def iterate_numbers(file: Any, names: Sequence[str]) -> Iterator[Floats]:
    """Yield the numeric columns in blocks, (rows, columns)."""
    for batch in file.iter_batches(batch_size=BLOCK, columns=list(names)):
        columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
        yield np.column_stack(columns) if columns else np.zeros((batch.num_rows, 0))


def measure_spread(file: Any, names: Sequence[str]) -> tuple[int, Floats, Floats]:
    """Return the number of rows, and means and standard deviations of the columns."""
    n, total, squares = 0, np.zeros(len(names)), np.zeros(len(names))
    origin: Floats | None = None
    for X in iterate_numbers(file, names):
        origin = X.mean(axis=0) if origin is None else origin  # squares of large means lose digits
        n += len(X)
        total += (X - origin).sum(axis=0)
        squares += ((X - origin) ** 2).sum(axis=0)
    assert origin is not None
    shift = total / n
    return n, origin + shift, np.sqrt(np.maximum(squares / n - shift**2, 0.0))


def count_bins(X: Floats, edges: Floats) -> Ints:
    """Return the rows in each bin of each column; values beyond the edges are in the outer bins."""
    counts = [
        np.bincount(np.searchsorted(inner, column, side="right"), minlength=BINS)
        for inner, column in zip(edges[1:-1].T, X.T, strict=True)
    ]
    return np.array(counts, dtype=np.int64).reshape(X.shape[1], BINS)


def count_categories(file: Any, name: str) -> CategoryProfile:
    """Return the counts of a categorical column."""
    found: dict[str, int] = {}
    for batch in file.iter_batches(batch_size=BLOCK, columns=[name]):
        for each in batch.column(0).value_counts():
            category = each["values"].as_py()
            key = EMPTY if category is None else str(category)
            found[key] = found.get(key, 0) + each["counts"].as_py()
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    kept, others = ranked[:MAX_CATEGORIES], ranked[MAX_CATEGORIES:]
    if others:
        kept.append((OTHERS, sum(count for _, count in others)))
    return CategoryProfile(
        name,
        tuple(category for category, _ in kept),
        tuple(hide_small(count) for _, count in kept),
    )


def hide_small(count: int) -> int | None:
    """Return a count, None if it is small."""
    return count if count >= SMALL_COUNT else None
