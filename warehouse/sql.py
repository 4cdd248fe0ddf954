"""Small builders of SQL text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import duckdb

from ppdm_core.model.errors import Defect, MachineTrouble, PpdmError
from warehouse.columns import RESERVED, Column

P = ParamSpec("P")
T = TypeVar("T")

ROW = f"{RESERVED}row"  # position of a record in its table
KEY = f"{RESERVED}key"
LABEL = f"{RESERVED}label"
NUMBERS = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
    *("float", "double", "decimal"),
)


def quoted(name: str) -> str:
    """An identifier, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | float) -> str:
    """A constant; floats go through text, since a bare ``0.1`` would be read as a decimal."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"'{float(value)!r}'::double"


def column_types(db: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Name and type of every source column of a raw table, in order."""
    db.execute(f"select * exclude ({ROW}) from {table} limit 0")
    described = {str(entry[0]): str(entry[1]) for entry in db.description or ()}
    db.fetchall()
    return described


def number(name: str, type_name: str) -> str:
    """A cell as double, null if it is none. Dates and booleans are no numbers, as in a CSV."""
    if type_name.lower().startswith(NUMBERS) and not type_name.endswith("]"):
        return f"try_cast({quoted(name)} as double)"
    return f"try_cast({quoted(name)}::varchar as double)"


def text(name: str) -> str:
    return f"{quoted(name)}::varchar"


def count_where(condition: str) -> str:
    """Much faster than a filter clause; ``count_if`` would be null where all conditions are."""
    return f"count(if({condition}, 1, null))"


def listed(cell: str, column: Column) -> str:
    """Whether a cell holds one of the declared categories; null for a missing one."""
    return f"{cell} in ({', '.join(literal(category) for category in column.categories)})"


def kept(columns: tuple[Column, ...]) -> str:
    """Whether a row stays in the table."""
    conditions = []
    for column in columns:
        if column.missing == "drop_row":
            conditions.append(f"{quoted(column.name)} is not null")
        if column.outside == "drop_row" and column.categories:
            conditions.append(f"coalesce({listed(text(column.name), column)}, true)")
    return " and ".join(conditions) or "true"


def without_values(doing: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """DuckDB quotes cells in its messages: only the type of an error is passed on."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except duckdb.OperationalError as error:
                problem: PpdmError = MachineTrouble(
                    f"{doing} failed ({type(error).__name__}).",
                    remedy="Check memory and disk space, then try again.",
                )
            except duckdb.Error as error:
                problem = Defect(f"{doing} failed ({type(error).__name__}).")
            raise problem  # out here, where DuckDB's error is not its context

        return guarded

    return decorate
