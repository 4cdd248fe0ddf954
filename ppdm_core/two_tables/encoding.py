"""Turn the columns of tables of any origin into numbers: dates, categories, empty cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.two_tables.tables import Table

MIN_DATE_SHARE = 0.9  # of the filled cells of a column of dates
MAX_INDICATORS = 12  # categories that get a column each
MAX_CATEGORY_SHARE = 0.5  # of the records: with more distinct values a column names persons
DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d")  # besides ISO 8601
SECONDS_PER_DAY = 86_400.0

Cells = NDArray[Any]
Encode = Callable[[Cells], dict[str, Cells]]  # from one column of any table to columns of numbers


def encode_tables(tables: Sequence[Table], label: str | None) -> list[Table]:
    """Return tables with numbers in place of dates, categories and empty cells.

    The first is the original, the second the release: both decide what a column holds. An empty
    number becomes the median of the original, and which cells are empty becomes a column of its
    own. Columns that only one of them has, that name persons, or that are the label stay.
    """
    original, released = tables[:2]
    found: dict[str, Encode] = {}
    for name in original.columns:
        if name in released.columns and name != label:
            encode = choose_encoding(name, original.columns[name], released.columns[name])
            if encode is not None:
                found[name] = encode
    return [encode_table(table, found) for table in tables]


def encode_table(table: Table, encodings: dict[str, Encode]) -> Table:
    """Return a table with the encoded columns in place of theirs."""
    columns: dict[str, Cells] = {}
    for name, cells in table.columns.items():
        columns |= encodings[name](cells) if name in encodings else {name: cells}
    return replace(table, columns=columns)


def choose_encoding(name: str, original: Cells, released: Cells) -> Encode | None:
    """Return how a column is turned into numbers; None if it is complete or cannot be."""
    if all(map(is_numeric, (original, released))):
        cells = np.concatenate([original, released])
        return make_filler(name, original, read_numbers) if np.isnan(cells).any() else None
    if all(map(is_date_column, (original, released))):
        return make_filler(name, original, read_dates)
    categories = list_categories(original, released)
    return None if categories is None else make_category_encoder(name, categories)


def list_categories(original: Cells, released: Cells) -> Cells | None:
    """Return the categories of an original column; None if it has none."""
    tables = (original, released)
    if any(map(is_numeric, tables)) or all(map(is_date_column, tables)):
        return None
    categories = np.unique(original.astype(str))
    is_category = 2 <= len(categories) <= max(2, MAX_CATEGORY_SHARE * len(original))
    return categories if is_category else None


def find_new_categories(original: Table, released: Table, label: str | None) -> tuple[str, ...]:
    """Return the columns of categories that have a released value that the original has not."""
    found = []
    for name in original.columns:
        if name in released.columns and name != label:
            ours, theirs = original.columns[name], released.columns[name]
            categories = list_categories(ours, theirs)
            if categories is not None and not np.isin(theirs.astype(str), categories).all():
                found.append(name)
    return tuple(found)


def is_numeric(cells: Cells) -> bool:
    """Return whether cells are numbers already."""
    return cells.dtype == np.float64


def make_filler(name: str, original: Cells, read: Callable[[Cells], Cells]) -> Encode:
    """Return an encoding that reads numbers, fills empty cells with the median and marks them."""
    filled = read(original)[np.isfinite(read(original))]
    median = float(np.median(filled)) if len(filled) else 0.0

    def encode(cells: Cells) -> dict[str, Cells]:
        numbers = read(cells)
        is_empty = np.isnan(numbers)
        return {
            name: np.where(is_empty, median, numbers),
            f"empty cells of {name}": is_empty.astype(np.float64),
        }

    return encode


def read_numbers(cells: Cells) -> Cells:
    """Return numbers as they are; a column of text in another table has none."""
    return cells if is_numeric(cells) else np.full(len(cells), np.nan)


def make_category_encoder(name: str, categories: Cells) -> Encode:
    """Return an encoding by one column for each category or, if there are many, by one number."""

    def encode(cells: Cells) -> dict[str, Cells]:
        text = cells.astype(str)
        place = np.minimum(np.searchsorted(categories, text), len(categories) - 1)
        code = np.where(categories[place] == text, place, -1)
        if len(categories) == 2:
            return {name: (code == 1).astype(np.float64)}
        if len(categories) > MAX_INDICATORS:
            return {name: code.astype(np.float64)}
        # Numbered, because a name of a category is a value of the table.
        return {f"{name} #{i + 1}": (code == i).astype(np.float64) for i in range(len(categories))}

    return encode


def is_date_column(cells: Cells) -> bool:
    """Return whether most filled cells are dates."""
    if is_numeric(cells):
        return False
    if cells.dtype.kind == "M":
        return True
    is_filled = cells.astype(str) != ""
    count = int(is_filled.sum())
    is_date = np.isfinite(read_dates(cells[is_filled]))
    return count > 0 and float(is_date.mean()) >= MIN_DATE_SHARE


def read_dates(cells: Cells) -> Cells:
    """Return dates as days since 1970; NaN where a cell is none."""
    if is_numeric(cells):
        return np.full(len(cells), np.nan)
    if cells.dtype.kind == "M":
        seconds = cells.astype("datetime64[s]")
        days = seconds.astype(np.int64) / SECONDS_PER_DAY
        return np.where(np.isnat(seconds), np.nan, days)
    values, place = np.unique(cells.astype(str), return_inverse=True)
    return np.array([parse_date(value) for value in values.tolist()], dtype=np.float64)[place]


def parse_date(text: str) -> float:
    """Return a date as days since 1970, NaN if the text is none."""
    if not any(letter in text for letter in "-./") or not text[:1].isdigit():
        return math.nan
    for read in (datetime.fromisoformat, *map(make_reader, DATE_FORMATS)):
        try:
            moment = read(text)
        except ValueError:
            continue
        return (
            moment.replace(tzinfo=None) - datetime(1970, 1, 1)
        ).total_seconds() / SECONDS_PER_DAY
    return math.nan


def make_reader(pattern: str) -> Callable[[str], datetime]:
    """Return a function that reads dates of one format."""
    return lambda text: datetime.strptime(text, pattern)
