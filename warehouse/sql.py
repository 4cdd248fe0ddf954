"""Small builders of SQL text, and errors without the values that DuckDB quotes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ppdm_core.model.errors import Defect, MachineTrouble, PpdmError
from warehouse.columns import RESERVED, Column

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

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


def quote_name(name: str) -> str:
    """Return an identifier in quotes, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | float) -> str:
    """Return a constant; floats are cast from text, since a bare ``0.1`` would be a decimal."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"'{float(value)!r}'::double"


def column_types(db: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return name and type of every source column of a raw table, in order."""
    db.execute(f"select * exclude ({ROW}) from {table} limit 0")
    described = {str(entry[0]): str(entry[1]) for entry in db.description or ()}
    db.fetchall()
    return described


def cast_to_number(name: str, type_name: str) -> str:
    """Return SQL for a cell as double, or null. Dates and booleans are no numbers, as in a CSV."""
    if type_name.lower().startswith(NUMBERS) and not type_name.endswith("]"):
        return f"try_cast({quote_name(name)} as double)"
    return f"try_cast({quote_name(name)}::varchar as double)"


def cast_to_text(name: str) -> str:
    """Return SQL for a cell as text."""
    return f"{quote_name(name)}::varchar"


def count_where(condition: str) -> str:
    """Return SQL that counts rows: faster than a filter clause, and never null as ``count_if``."""
    return f"count(if({condition}, 1, null))"


def build_category_condition(cell: str, column: Column) -> str:
    """Return SQL for whether a cell holds a declared category; null for a missing cell."""
    return f"{cell} in ({', '.join(literal(category) for category in column.categories)})"


def build_row_filter(columns: tuple[Column, ...]) -> str:
    """Return SQL for whether a row stays in the table."""
    conditions = []
    for column in columns:
        if column.missing == "drop_row":
            conditions.append(f"{quote_name(column.name)} is not null")
        if column.outside == "drop_row" and column.categories:
            conditions.append(
                f"coalesce({build_category_condition(cast_to_text(column.name), column)}, true)"
            )
    return " and ".join(conditions) or "true"


def hide_values(doing: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function so that errors of DuckDB, which quote cells, are passed on as types."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            import duckdb

            try:
                return function(*args, **kwargs)
            except duckdb.OperationalError as error:
                problem: PpdmError = MachineTrouble(
                    f"{doing} failed ({type(error).__name__}).",
                    remedy="Check memory and disk space, then try again.",
                )
            except duckdb.Error as error:
                problem = Defect(f"{doing} failed ({type(error).__name__}).")
            raise problem  # outside the except clause, so that DuckDB's error is not its context

        return guarded

    return decorate


def count_rows(db: duckdb.DuckDBPyConnection, table: str) -> int:
    """Return the number of rows of a table."""
    return int(db.execute(f"select count(*) from {table}").fetchall()[0][0])


@contextmanager
def register_once(db: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> Iterator[None]:
    """Make Arrow data known to a database under a name, for one scan.

    DuckDB keeps what was registered until the transaction ends: a stream that was read to its end
    holds no rows, a table would hold all of them.
    """
    import pyarrow as pa

    batches = iter(table.to_batches())
    db.register(name, pa.RecordBatchReader.from_batches(table.schema, batches))
    yield
    db.unregister(name)  # not after an error, which ends the transaction
