"""The named functions that derived columns are computed by, as SQL.

A release file names a function and its arguments, never SQL. A result is empty where a cell of a
source is empty, or where the function is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from warehouse.columns import Column, Derivation
from warehouse.sql import cast_to_number, cast_to_text, literal, quote_name

DAYS_IN_YEAR = 365.2425  # mean of the Gregorian calendar
BEYOND_EDGES = "beyond the edges"  # no bin has this name
# A date as ISO 8601 writes it, alone or in front of a time. DuckDB alone would also read words.
DATE = r"^\s*(\d{4}-\d{2}-\d{2})(\s*$|[ T]\d)"
ZONED_TYPE = "timestamp with time zone"


@dataclass(frozen=True)
class Function:
    """A named function of one or two columns."""

    reads: Literal["date", "number"]
    build: Callable[[Column, Derivation, Sequence[str]], str]  # SQL, of the SQL of each source
    gives: Literal["numeric", "categorical"] = "numeric"
    sources: int = 1
    options: tuple[str, ...] = ()  # further keys, all of them required


def name_bins(edges: Sequence[float]) -> tuple[str, ...]:
    """Return the name of each bin: [0, 18) contains 0 and not 18; the last one contains both."""
    texts = [format_edge(edge) for edge in edges]
    pairs = list(pairwise(texts))
    return tuple(f"[{a}, {b}{']' if (a, b) == pairs[-1] else ')'}" for a, b in pairs)


def format_edge(edge: float) -> str:
    """Return an edge without loss, and without a point if it is whole."""
    return repr(edge).removesuffix(".0")


def _build_years_since(column: Column, derivation: Derivation, cells: Sequence[str]) -> str:
    days = f"date_diff('day', {cells[0]}, {literal(derivation.date)}::date)"
    return f"{days} / {literal(DAYS_IN_YEAR)}"


def _build_bin(column: Column, derivation: Derivation, cells: Sequence[str]) -> str:
    (cell,), edges, names = cells, derivation.edges, name_bins(derivation.edges)
    is_clamped = column.outside == "clamp"
    below, above = (names[0], names[-1]) if is_clamped else (BEYOND_EDGES, BEYOND_EDGES)
    upper = zip(edges[1:-1], names, strict=False)
    cases = [
        f"when {cell} is null then null",
        f"when {cell} < {literal(edges[0])} then {literal(below)}",
        *(f"when {cell} < {literal(edge)} then {literal(name)}" for edge, name in upper),
        f"when {cell} <= {literal(edges[-1])} then {literal(names[-1])}",
    ]
    return f"case {' '.join(cases)} else {literal(above)} end"


FUNCTIONS: dict[str, Function] = {
    "year": Function("date", lambda c, d, x: f"year({x[0]})"),
    "month": Function("date", lambda c, d, x: f"month({x[0]})"),
    "years_since": Function("date", _build_years_since, options=("date",)),
    "log1p": Function(
        "number",
        lambda c, d, x: f"case when {x[0]} > -1 then ln(1 + {x[0]}) end",
    ),
    "bin": Function("number", _build_bin, "categorical", options=("edges",)),
    "ratio": Function(
        "number",
        lambda c, d, x: f"case when {x[1]} <> 0 then {x[0]} / {x[1]} end",
        sources=2,
    ),
}


def cast_to_date(name: str, type_name: str) -> str:
    """Return SQL for a cell as date, or null. An instant is read as its date in UTC."""
    text = cast_to_text(name)
    if type_name.lower() == ZONED_TYPE:
        text = f"({quote_name(name)} at time zone 'UTC')::varchar"
    return extract_date(text)


def extract_date(text: str) -> str:
    """Return SQL for the date at the start of a text, or null."""
    return f"try_cast(regexp_extract({text}, {literal(DATE)}, 1) as date)"


def build_result(column: Column, types: dict[str, str]) -> str:
    """Return SQL for the result, as double or text; null where it is not defined."""
    derivation = column.derivation
    assert derivation is not None
    function = FUNCTIONS[derivation.function]
    cells = [read_cell(function, name, types) for name in derivation.sources]
    result = function.build(column, derivation, cells)
    if function.gives == "categorical":
        return result
    number = f"({result})::double"
    return f"case when isfinite({number}) then {number} end"


def read_cell(function: Function, name: str, types: dict[str, str]) -> str:
    """Return SQL for a cell of a source, as the function reads it; null if it cannot."""
    cast = cast_to_date if function.reads == "date" else cast_to_number
    return cast(name, types[name])
