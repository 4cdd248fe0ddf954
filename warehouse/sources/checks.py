"""Checks for every kind of source. No message quotes a name or a cell of the source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput, Defect, MachineTrouble, PpdmError
from warehouse.columns import RESERVED, Source

if TYPE_CHECKING:
    import duckdb

MIN_ROWS = 2


def check_file(source: Source) -> None:
    """Check that the file exists, is readable and is not empty."""
    name, path = source.name, source.path
    if not os.path.exists(path):
        raise BadInput(
            f"The source {name} does not exist.",
            file=path,
            remedy="Check 'path' in [source]; it is relative to the release file.",
        )
    if not os.path.isfile(path) or not os.access(path, os.R_OK, effective_ids=True):
        raise BadInput(
            f"The source {name} is not a readable file.",
            file=path,
            remedy="Check 'path' in [source] and the permissions of the file.",
        )
    if os.path.getsize(path) == 0:
        raise BadInput(
            f"The source {name} is empty.", file=path, remedy="Give a file with a header and rows."
        )


def check_header(names: Sequence[str], source: Source) -> None:
    """Check the names of the columns.

    Messages name columns by position: in a file without a header these names would be cells.
    """
    file, seen = source.name, dict[str, int]()
    for position, name in enumerate(names, start=1):
        folded = _fold_case(name)
        if not name.strip():
            raise BadInput(
                f"Column {position} of {file} has no name.",
                file=source.path,
                remedy="Give every column a name in the header.",
            )
        if folded.startswith(RESERVED):
            raise BadInput(
                f"Column {position} of {file} starts with '{RESERVED}', a reserved prefix.",
                file=source.path,
                remedy="Rename it.",
            )
        if folded in seen:
            raise BadInput(
                f"Columns {seen[folded]} and {position} of {file} have the same name "
                "(upper and lower case count as the same).",
                file=source.path,
                remedy="Rename one of them.",
            )
        seen[folded] = position


def check_rows(db: duckdb.DuckDBPyConnection, table: str, source: Source) -> None:
    """Check that the loaded table has enough rows."""
    (n,) = db.execute(f"select count(*) from {table}").fetchall()[0]
    if n < MIN_ROWS:
        found = "a header but no rows" if n == 0 else "only one row"
        raise BadInput(
            f"The source {source.name} has {found}.",
            file=source.path,
            remedy=f"Give a table with at least {MIN_ROWS} rows.",
        )


def describe_read_error(error: duckdb.Error, source: Source, if_bad_data: PpdmError) -> PpdmError:
    """Return an error for one of DuckDB, whose message may quote cells; only its type is used."""
    import duckdb

    if isinstance(error, duckdb.InvalidInputException | duckdb.DataError):
        return if_bad_data
    if isinstance(error, duckdb.OperationalError):
        return MachineTrouble(
            f"Reading {source.name} failed ({type(error).__name__}).",
            file=source.path,
            remedy="Check memory and disk space, then try again.",
        )
    return Defect(f"Reading {source.name} failed ({type(error).__name__}).", file=source.path)


def _fold_case(name: str) -> str:
    """Return a name in lower case as DuckDB compares it: it ignores the case of ASCII only."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
