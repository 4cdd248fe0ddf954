"""One table from the files of a source, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from warehouse.columns import Source
from warehouse.sql import NUMBERS, ROW, quote_name

if TYPE_CHECKING:
    import duckdb

Types = dict[str, str]  # of columns, by name
Selector = Callable[[Source], str]  # the query of a file
Guard = Callable[[Source], AbstractContextManager[None]]  # turns errors of a file into ours


def load_parts(
    db: duckdb.DuckDBPyConnection,
    files: Sequence[Source],
    select_rows: Selector,
    guard: Guard,
    table: str,
) -> None:
    """Create ``table`` with the rows of all files, one file after the other."""
    cells, count, begin = "*", 0, f"create table {table} as"
    if len(files) > 1:
        types = unify_types(db, files, [read_types(db, each, select_rows, guard) for each in files])
        cells = ", ".join(
            f"{quote_name(name)}::{kind} as {quote_name(name)}" for name, kind in types.items()
        )
    for file in files:
        with guard(file):
            query = select_rows(file)
            place = f"row_number() over () - 1 + {count} as {ROW}"
            done = db.execute(f"{begin} select {place}, {cells} from ({query})").fetchall()
        count += int(done[0][0])
        begin = f"insert into {table}"


def read_types(
    db: duckdb.DuckDBPyConnection, file: Source, select_rows: Selector, guard: Guard
) -> Types:
    """Return names and types of the columns of a file."""
    with guard(file):
        return describe_query(db, select_rows(file))


def describe_query(db: duckdb.DuckDBPyConnection, query: str) -> Types:
    """Return names and types of the columns of a query."""
    return {name: kind for name, kind, *_ in db.execute(f"describe {query}").fetchall()}


def unify_types(
    db: duckdb.DuckDBPyConnection, files: Sequence[Source], found: Sequence[Types]
) -> Types:
    """Return one type for each column; raise BadInput if the files have other columns or types.

    Numbers of different types become the wider one: a file whose integers have empty cells often
    stores them as floating-point numbers.
    """
    types = dict(found[0])
    for file, other in zip(files[1:], found[1:], strict=True):
        if set(other) != set(types):
            raise BadInput(
                f"The file {file.name} has other columns than {files[0].name}.",
                file=file.path,
                remedy="Give all files of the source the same columns, or name fewer files.",
            )
        for position, (name, kind) in enumerate(types.items(), start=1):
            if kind == other[name]:
                continue
            if not (is_number_type(kind) and is_number_type(other[name])):
                raise BadInput(
                    f"Column {position} of {file.name} has another type ({other[name]}) than in "
                    f"{files[0].name} ({kind}).",
                    file=file.path,
                    remedy="Write the column with the same type to all files.",
                )
            both = f"select null::{kind} as x union all select null::{other[name]}"
            types[name] = describe_query(db, both)["x"]
    return types


def is_number_type(kind: str) -> bool:
    """Return whether a type of DuckDB is one of numbers."""
    return kind.lower().startswith(NUMBERS) and not kind.endswith("]")
