"""Expectations that a release file adds to the checks of its source, and the figures they need.

Each has the name and the arguments of an expectation of Great Expectations, and its meaning: the
cells are those of the source, before rows are dropped, cells filled or values clamped. Numeric
features are compared as numbers, all other columns as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from warehouse.columns import Column
from warehouse.sql import cast_to_number, cast_to_text, count_where, literal

# By which Great Expectations lets a quantile exceed its range.
QUANTILE_RELATIVE_TOLERANCE, QUANTILE_ABSOLUTE_TOLERANCE = 1e-4, 1e-8


@dataclass(frozen=True)
class QuantileRange:
    """The range of one quantile."""

    quantile: float
    low: float
    high: float


@dataclass(frozen=True)
class Expectation:
    """One expectation of a release file; arguments that its type does not have are None."""

    type: str  # a key of EXPECTATIONS
    column: str | None = None
    min_value: float | None = None
    max_value: float | None = None
    value_set: tuple[str | float, ...] | None = None
    mostly: float | None = None
    quantile_ranges: tuple[QuantileRange, ...] | None = None

    def list_arguments(self) -> dict[str, Any]:
        """Return the arguments other than the column, as Great Expectations takes them."""
        given: dict[str, Any] = {
            "min_value": self.min_value,
            "max_value": self.max_value,
            "value_set": None if self.value_set is None else list(self.value_set),
            "mostly": self.mostly,
            "quantile_ranges": self.quantile_ranges
            and {
                "quantiles": [each.quantile for each in self.quantile_ranges],
                "value_ranges": [[each.low, each.high] for each in self.quantile_ranges],
            },
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Figure:
    """A figure of the profile as SQL, and its bounds; it is never a cell and never null."""

    sql: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Kind:
    """One type of expectation: its arguments, and how its figures are computed from a cell."""

    build: Callable[[Expectation, str], list[Figure]]
    required: tuple[str, ...] = ("column",)
    optional: tuple[str, ...] = ()
    is_numeric: bool = False  # for numeric features only

    @property
    def arguments(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


def is_numeric_feature(column: Column) -> bool:
    """Return whether a column is compared as numbers."""
    return column.role == "feature" and column.type == "numeric"


def build_cell(column: Column, type_name: str) -> str:
    """Return SQL for the cell of a column, as finite number or text."""
    if not is_numeric_feature(column):
        return cast_to_text(column.name)
    number = cast_to_number(column.name, type_name)
    return f"if(isfinite({number}), {number}, null)"  # other numbers fail a check of their own


def list_figures(expectation: Expectation, position: int) -> Iterator[tuple[str, Figure]]:
    """Yield key and figure of all that an expectation needs; its cell is named by ``name_cell``."""
    figures = EXPECTATIONS[expectation.type].build(expectation, name_cell(position))
    for i, figure in enumerate(figures):
        yield f"figure {i} of expectation {position}", figure


def name_cell(position: int) -> str:
    """Return the name of the cell that the expectation at a position is about."""
    return f"y{position}"


def _bounds(expectation: Expectation, sql: str) -> list[Figure]:
    low, high = expectation.min_value, expectation.max_value
    return [Figure(sql, -math.inf if low is None else low, math.inf if high is None else high)]


def _share(expectation: Expectation, condition: str, total: str) -> list[Figure]:
    """Return the share of cells that fulfil a condition; it is 1 if there are no cells."""
    share = f"coalesce({count_where(condition)}::double / nullif({total}, 0), 1.0)"
    return [Figure(share, low=1.0 if expectation.mostly is None else expectation.mostly)]


def _share_of_values(expectation: Expectation, condition: str, y: str) -> list[Figure]:
    return _share(expectation, condition, f"count({y})")


def _not_null(expectation: Expectation, y: str) -> list[Figure]:
    return _share(expectation, f"{y} is not null", "count(*)")


def _between(expectation: Expectation, y: str) -> list[Figure]:
    limits = ((">=", expectation.min_value), ("<=", expectation.max_value))
    conditions = [f"{y} {sign} {literal(limit)}" for sign, limit in limits if limit is not None]
    return _share_of_values(expectation, " and ".join(conditions), y)


def _in_set(expectation: Expectation, y: str) -> list[Figure]:
    values = ", ".join(literal(value) for value in expectation.value_set or ())
    return _share_of_values(expectation, f"{y} in ({values})", y)


def _unique(expectation: Expectation, y: str) -> list[Figure]:
    return [Figure(f"count({y}) - count(distinct {y})", high=0)]


def _mean(expectation: Expectation, y: str) -> list[Figure]:
    at_least_one = Figure(f"count({y})", low=1)
    return [at_least_one, *_bounds(expectation, f"coalesce(favg({y}), 0)")]


def _quantiles(expectation: Expectation, y: str) -> list[Figure]:
    """Return how many values too many are outside each range; a quantile itself is a cell."""
    figures = []
    for each in expectation.quantile_ranges or ():
        before = f"round_even((count({y}) - 1) * {literal(each.quantile)}, 0)"
        low, high = each.low - _tolerance(each.low), each.high + _tolerance(each.high)
        below, above = count_where(f"{y} < {literal(low)}"), count_where(f"{y} > {literal(high)}")
        figures.append(Figure(f"{below} - {before}", high=0))
        figures.append(Figure(f"{above} - (count({y}) - 1 - {before})", high=0))
    return figures


def _tolerance(limit: float) -> float:
    return QUANTILE_ABSOLUTE_TOLERANCE + QUANTILE_RELATIVE_TOLERANCE * abs(limit)


RANGE = ("min_value", "max_value")
EXPECTATIONS = {
    "expect_column_values_to_not_be_null": Kind(_not_null, optional=("mostly",)),
    "expect_column_unique_value_count_to_be_between": Kind(
        lambda each, y: _bounds(each, f"count(distinct {y})"), optional=RANGE
    ),
    "expect_column_values_to_be_between": Kind(
        _between, optional=(*RANGE, "mostly"), is_numeric=True
    ),
    "expect_column_values_to_be_in_set": Kind(
        _in_set, required=("column", "value_set"), optional=("mostly",)
    ),
    "expect_column_values_to_be_unique": Kind(_unique),
    "expect_table_row_count_to_be_between": Kind(
        lambda each, _: _bounds(each, "count(*)"), required=(), optional=RANGE
    ),
    "expect_column_mean_to_be_between": Kind(_mean, optional=RANGE, is_numeric=True),
    "expect_column_quantile_values_to_be_between": Kind(
        _quantiles, required=("column", "quantile_ranges"), is_numeric=True
    ),
}
