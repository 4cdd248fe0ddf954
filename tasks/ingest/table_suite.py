"""The checks of a source as expectations of its own columns, which Great Expectations can run."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ppdm_core.model.errors import BadInput
from warehouse.columns import OTHER, Column
from warehouse.expectations import Expectation

Entry = dict[str, Any]  # type and kwargs of one expectation
MAX_CONDITIONS = 100  # of Great Expectations, in one row condition
NUMBER_TYPES = [  # of pandas, then of SQL
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "Int64", "Float64"),
    *("SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "NUMERIC", "REAL", "FLOAT", "DOUBLE"),
    *("DOUBLE_PRECISION",),
]


def list_table_expectations(
    columns: Sequence[Column], record_id: str | None, expectations: Sequence[Expectation]
) -> list[Entry]:
    """Return the built-in checks and the added expectations, for a table with these columns.

    Those of derived columns are left out, because the table does not have them.
    """
    derived = {column.name for column in columns if column.derivation is not None}
    columns = [column for column in columns if column.name not in derived]
    names = [column.name for column in columns]
    kept = _build_row_condition(columns)
    entries = [
        _entry("expect_table_columns_to_match_set", column_set=names, exact_match=True),
        _entry("expect_table_row_count_to_be_between", min_value=2),
    ]
    if kept:
        entries.append(_entry("expect_table_row_count_to_be_between", min_value=2, **kept))
    for column in columns:
        if column.name == record_id:
            entries.append(_entry("expect_column_values_to_not_be_null", column))
            entries.append(_entry("expect_column_values_to_be_unique", column))
        elif column.role in ("feature", "label"):
            entries += _list_value_expectations(column, kept)
    for each in merge_quantiles([one for one in expectations if one.column not in derived]):
        of_column = {} if each.column is None else {"column": each.column}
        entries.append({"type": each.type, "kwargs": {**of_column, **each.list_arguments()}})
    return entries


def merge_quantiles(expectations: Iterable[Expectation]) -> list[Expectation]:
    """Return the expectations with all quantiles of a column in one.

    Great Expectations computes quantiles once for each column: of several expectations about
    quantiles of a column, all but one are compared with the wrong quantiles.
    """
    merged: list[Expectation] = []
    places: dict[str | None, int] = {}
    for each in expectations:
        if each.quantile_ranges is None:
            merged.append(each)
        elif each.column in places:
            first = merged[places[each.column]]
            ranges = (*(first.quantile_ranges or ()), *each.quantile_ranges)
            merged[places[each.column]] = replace(first, quantile_ranges=ranges)
        else:
            places[each.column] = len(merged)
            merged.append(each)
    return merged


def _entry(type_name: str, column: Column | None = None, **arguments: Any) -> Entry:
    of_column = {} if column is None else {"column": column.name}
    return {"type": type_name, "kwargs": {**of_column, **arguments}}


def _list_value_expectations(column: Column, kept: Entry) -> Iterator[Entry]:
    """Yield the expectations of a feature or label; ``kept`` selects the rows not dropped."""
    distinct = "expect_column_unique_value_count_to_be_between"
    if column.missing == "reject":
        yield _entry("expect_column_values_to_not_be_null", column)
    if column.type == "categorical":
        if column.outside not in ("drop_row", OTHER):
            categories = list(column.categories)
            yield _entry("expect_column_values_to_be_in_set", column, value_set=categories)
        if column.role == "label":
            yield _entry(distinct, column, min_value=2, **kept)
        return
    yield _entry("expect_column_values_to_be_in_type_list", column, type_list=NUMBER_TYPES)
    finite = {"min_value": -sys.float_info.max, "max_value": sys.float_info.max}
    yield _entry("expect_column_values_to_be_between", column, **finite)
    low, high = (bound if isinstance(bound, float) else None for bound in (column.low, column.high))
    if column.outside == "reject" and (low, high) != (None, None):
        yield _entry("expect_column_values_to_be_between", column, min_value=low, max_value=high)
    if low is None and high is None:
        yield _entry(distinct, column, min_value=2, **kept)
    elif high is None:
        smallest = {"min_value": low, "strict_min": True}
        yield _entry("expect_column_max_to_be_between", column, **smallest, **kept)
    elif low is None:
        largest = {"max_value": high, "strict_max": True}
        yield _entry("expect_column_min_to_be_between", column, **largest, **kept)
    else:
        yield _entry(distinct, column, min_value=1, **kept)


def _build_row_condition(columns: Sequence[Column]) -> Entry:
    """Return the condition that a row is not dropped, as an argument; empty if all rows stay.

    Great Expectations takes ORs of ANDs only, so that each column with kept empty cells doubles
    the conditions.
    """
    alternatives: list[list[Entry]] = []
    for column in columns:
        name = {"name": column.name}
        filled = {"type": "nullity", "column": name, "is_null": False}
        listed = {"type": "comparison", "column": name, "operator": "IN"}
        listed["parameter"] = list(column.categories)
        has_no_gaps = column.missing == "reject" and column.role in ("feature", "label")
        if column.outside == "drop_row" and column.categories:
            drops_gaps = has_no_gaps or column.missing == "drop_row"
            alternatives.append([listed] if drops_gaps else [{**filled, "is_null": True}, listed])
        elif column.missing == "drop_row":
            alternatives.append([filled])
    ways = [list(way) for way in itertools.islice(itertools.product(*alternatives), MAX_CONDITIONS)]
    if sum(map(len, ways)) > MAX_CONDITIONS:
        raise BadInput(
            "The rules that drop rows are too many for one expectation of Great Expectations.",
            remedy='Declare "reject" for some columns, or check without --expectations.',
        )
    if ways == [[]]:
        return {}
    groups = [way[0] if len(way) == 1 else {"type": "and", "conditions": way} for way in ways]
    condition = groups[0] if len(groups) == 1 else {"type": "or", "conditions": groups}
    return {"row_condition": condition}
